import { expect, test } from 'vitest'

import type { AgentsPort } from '../src/index.ts'
import type { Answer } from './management-server.ts'
import { manage, text } from './management-server.ts'

const STEP = { historyStepMs: 50 }

/** A step without a reading in time has null, and a slow reading is followed by a pause of fifty times its duration. */
const READINGS = { timeout: 50_000 }

function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0)
}

function ofType({ data }: Answer, type: string): { messages_in: number[]; messages_out: number[] } {
  return data.messages.find((one: { type: string }) => one.type === type)
}

/** A channel in an answer. */
interface ShownChannel {
  readonly type: string
  readonly name: string
  readonly messages_in: readonly (number | null)[]
  readonly depth: readonly (number | null)[]
}

test('MGMT-15 - counts of messages, gauges of queues and of the process', async () => {
  const { get, broker } = await manage(STEP)
  const shop = broker.as({ clientId: 'shop' })
  for (let i = 0; i < 3; i++) await shop.queues.send('orders', { body: text('x') })
  await shop.queues.receive('orders', { maxMessages: 1, leaseMs: 60_000 })
  await shop.eventsStore.publish('log', { body: text('x') })
  await expect(shop.channels.info('queues', 'nothing')).rejects.toThrow('there is no channel')
  let answer = await get('/api/history')
  await expect
    .poll(async () => {
      answer = await get('/api/history')
      const { queues, errors } = answer.data
      return {
        sent: sum(ofType(answer, 'queues').messages_in),
        received: sum(ofType(answer, 'queues').messages_out),
        stored: sum(ofType(answer, 'events_store').messages_in),
        failed: sum(errors.CHANNEL_NOT_FOUND ?? []),
        waiting: queues.waiting.at(-1),
        inFlight: queues.in_flight.at(-1),
      }
    }, READINGS)
    .toEqual({ sent: 3, received: 1, stored: 1, failed: 1, waiting: 2, inFlight: 1 })
  const { data } = answer
  expect(data).toMatchObject({ node: 'n1', step_seconds: 0.05 })
  expect(Date.parse(data.end) - Date.parse(data.start)).toBe(data.steps * 50)
  expect(data.memory_bytes.at(-1)).toBeGreaterThan(1_000_000)
  expect(data.heap_bytes.at(-1)).toBeGreaterThan(1_000_000)
  expect(data.store_bytes.at(-1)).toBeGreaterThan(0)
  expect(data.event_loop_delay_seconds.at(-1)).toBeGreaterThanOrEqual(0)
  const lists = [...Object.values(data.queues), data.memory_bytes, data.errors.CHANNEL_NOT_FOUND] as unknown[][]
  for (const list of lists) expect(list).toHaveLength(data.steps)
}, 60_000)

test('MGMT-15 - the most active channels come first, and only as many as wanted', async () => {
  const { get, broker } = await manage(STEP)
  const shop = broker.as({ clientId: 'shop' })
  for (const [channel, count] of Object.entries({ few: 1, many: 9, some: 4 })) {
    for (let i = 0; i < count; i++) await shop.queues.send(channel, { body: text('x') })
  }
  const channels = async (query: string): Promise<ShownChannel[]> => (await get(`/api/history${query}`)).data.channels
  const sent = async (query: string): Promise<[string, number][]> =>
    (await channels(query)).map(({ name, messages_in }) => [name, sum(messages_in)])
  // A channel is listed from the beginning of its first step on, and has counts from its end on.
  await expect
    .poll(() => sent(''))
    .toEqual([
      ['many', 9],
      ['some', 4],
      ['few', 1],
    ])
  expect(await sent('?channels=1')).toEqual([['many', 9]])
  await expect
    .poll(
      async () => (await channels('?channels=1')).map(({ type, name, depth }) => [type, name, depth.at(-1)]),
      READINGS,
    )
    .toEqual([['queues', 'many', 9]])
}, 60_000)

test('MGMT-15 - follows an idle channel from the first request for it', async () => {
  const { get, act } = await manage(STEP)
  await act('create_channel', { channel: 'quiet', type: 'queues' })
  const ask = async () => (await get('/api/history?channel=quiet&type=queues')).data.channels[0]
  await expect.poll(async () => (await ask())?.depth.at(-1), READINGS).toBe(0)
  expect((await get('/api/history')).data.channels).toEqual([])
  expect((await get('/api/history?channel=none&type=queues')).data.channels).toEqual([])
}, 60_000)

test('MGMT-15 - a channel and its type are given together', async () => {
  const { get } = await manage()
  for (const query of ['channel=x', 'type=queues']) {
    const { error, data } = await get(`/api/history?${query}`)
    expect([error, data.code]).toEqual([true, 'PARAMETER_INVALID'])
  }
})

test('MGMT-15 - returns only the steps after a given time', async () => {
  const { get } = await manage(STEP)
  await expect.poll(async () => (await get('/api/history')).data.steps).toBeGreaterThan(2)
  const { data: first } = await get('/api/history')
  await expect.poll(async () => (await get(`/api/history?after=${first.end}`)).data.steps).toBeGreaterThan(0)
  const { data: next } = await get(`/api/history?after=${first.end}`)
  expect(next.start).toBe(first.end)
  const { data: none } = await get('/api/history?after=2099-01-01T00:00:00Z')
  expect([none.steps, none.memory_bytes]).toEqual([0, []])
})

test('MGMT-15 - a day has minutes, with the sums of their steps', async () => {
  const { get, broker } = await manage({ historyStepMs: 20 })
  await broker.as({ clientId: 'shop' }).queues.send('orders', { body: text('x') })
  await expect.poll(async () => sum(ofType(await get('/api/history?range=day'), 'queues').messages_in)).toBe(1)
  expect((await get('/api/history?range=day')).data.step_seconds).toBe(0.24)
})

/** An agent in an answer. */
interface ShownAgent {
  readonly agent_id: string
  readonly calls: readonly (number | null)[]
  readonly errors: readonly (number | null)[]
  readonly latency_seconds: readonly (number | null)[]
}

test('MGMT-15 - calls, errors and latency of agents', async () => {
  const totals = new Map([
    ['slow', { calls: 0, errors: 0, seconds: 0 }],
    ['idle', { calls: 0, errors: 0, seconds: 0 }],
  ])
  const agents: AgentsPort = { list: () => [], deregister: async () => false, calls: () => totals }
  const { get } = await manage({ ...STEP, agents })
  await expect.poll(async () => (await get('/api/history')).data.steps).toBeGreaterThan(0)
  totals.set('slow', { calls: 4, errors: 1, seconds: 10 })
  const known = async (): Promise<ShownAgent[]> => (await get('/api/history')).data.agents
  // An agent is listed before the first step with its calls has ended.
  await expect
    .poll(async () =>
      (await known()).map(({ agent_id, calls, errors, latency_seconds }) => ({
        agent_id,
        calls: sum(calls),
        errors: sum(errors),
        latencies: latency_seconds.filter((value) => value !== null),
      })),
    )
    .toEqual([{ agent_id: 'slow', calls: 4, errors: 1, latencies: [2.5] }])
  expect((await get('/api/history?agent_id=slow')).data.agents).toHaveLength(1)
  expect((await get('/api/history?agent_id=idle')).data.agents).toEqual([])
  totals.delete('slow')
  await expect.poll(known).toEqual([])
})

test('MGMT-15 - an engine that fails leaves gaps', async () => {
  const { get, engine } = await manage(STEP)
  const waiting = async () => (await get('/api/history')).data.queues.waiting.at(-1)
  await expect.poll(waiting, READINGS).toBe(0)
  engine.stats = () => Promise.reject(new Error('away'))
  await expect.poll(waiting, READINGS).toBe(null)
}, 60_000)
