import { expect, test } from 'vitest'

import type { AgentsPort } from '../src/index.ts'
import type { Answer, ManagementServer } from './management-server.ts'
import { manage, text } from './management-server.ts'

const STEP = { historyStepMs: 50 }

/** A step without a reading in time has null, and a slow reading is followed by a pause of fifty times its duration. */
const READINGS = { timeout: 50_000 }

function sum(values: readonly (number | null)[] = []): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0)
}

/** A value of each step; null for a step without a reading. */
type Values = readonly (number | null)[]

interface Flow {
  readonly type: string
  readonly messages_in: Values
  readonly messages_out: Values
}

interface History {
  readonly start: string
  readonly end: string
  readonly steps: number
  readonly step_seconds: number
  readonly messages: readonly Flow[]
  readonly errors: Readonly<Record<string, Values>>
  readonly queues: { readonly waiting: Values; readonly in_flight: Values }
  readonly memory_bytes: Values
  readonly heap_bytes: Values
  readonly store_bytes: Values
  readonly event_loop_delay_seconds: Values
  readonly channels: readonly (Flow & { readonly name: string; readonly depth: Values })[]
  readonly agents: readonly {
    readonly agent_id: string
    readonly calls: Values
    readonly errors: Values
    readonly latency_seconds: Values
  }[]
}

function historyOf({ get }: ManagementServer, query = ''): Promise<Answer<History>> {
  return get(`/api/history${query}`)
}

function ofType({ data }: Answer<History>, type: string): Flow | undefined {
  return data.messages.find((one) => one.type === type)
}

test('MGMT-15 - counts of messages, gauges of queues and of the process', async () => {
  const server = await manage(STEP)
  const { broker } = server
  const shop = broker.as({ clientId: 'shop' })
  for (let i = 0; i < 3; i++) await shop.queues.send('orders', { body: text('x') })
  await shop.queues.receive('orders', { maxMessages: 1, leaseMs: 60_000 })
  await shop.eventsStore.publish('log', { body: text('x') })
  await expect(shop.channels.info('queues', 'nothing')).rejects.toThrow('there is no channel')
  let answer = await historyOf(server)
  await expect
    .poll(async () => {
      answer = await historyOf(server)
      const { queues, errors } = answer.data
      return {
        sent: sum(ofType(answer, 'queues')?.messages_in),
        received: sum(ofType(answer, 'queues')?.messages_out),
        stored: sum(ofType(answer, 'events_store')?.messages_in),
        failed: sum(errors['CHANNEL_NOT_FOUND']),
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
  const lists = [...Object.values(data.queues), data.memory_bytes, data.errors['CHANNEL_NOT_FOUND']]
  for (const list of lists) expect(list).toHaveLength(data.steps)
}, 60_000)

test('MGMT-15 - the most active channels come first, and only as many as wanted', async () => {
  const server = await manage(STEP)
  const { broker } = server
  const shop = broker.as({ clientId: 'shop' })
  for (const [channel, count] of Object.entries({ few: 1, many: 9, some: 4 })) {
    for (let i = 0; i < count; i++) await shop.queues.send(channel, { body: text('x') })
  }
  const channels = async (query: string) => (await historyOf(server, query)).data.channels
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
  const server = await manage(STEP)
  const { act } = server
  await act('create_channel', { channel: 'quiet', type: 'queues' })
  const ask = async () => (await historyOf(server, '?channel=quiet&type=queues')).data.channels[0]
  await expect.poll(async () => (await ask())?.depth.at(-1), READINGS).toBe(0)
  expect((await historyOf(server)).data.channels).toEqual([])
  expect((await historyOf(server, '?channel=none&type=queues')).data.channels).toEqual([])
}, 60_000)

test('MGMT-15 - a channel and its type are given together', async () => {
  const { get } = await manage()
  for (const query of ['channel=x', 'type=queues']) {
    const { error, data } = await get(`/api/history?${query}`)
    expect([error, data.code]).toEqual([true, 'PARAMETER_INVALID'])
  }
})

test('MGMT-15 - returns only the steps after a given time', async () => {
  const server = await manage(STEP)
  await expect.poll(async () => (await historyOf(server)).data.steps).toBeGreaterThan(2)
  const { data: first } = await historyOf(server)
  await expect.poll(async () => (await historyOf(server, `?after=${first.end}`)).data.steps).toBeGreaterThan(0)
  const { data: next } = await historyOf(server, `?after=${first.end}`)
  expect(next.start).toBe(first.end)
  const { data: none } = await historyOf(server, '?after=2099-01-01T00:00:00Z')
  expect([none.steps, none.memory_bytes]).toEqual([0, []])
})

test('MGMT-15 - a day has minutes, with the sums of their steps', async () => {
  const server = await manage({ historyStepMs: 20 })
  const { broker } = server
  await broker.as({ clientId: 'shop' }).queues.send('orders', { body: text('x') })
  await expect.poll(async () => sum(ofType(await historyOf(server, '?range=day'), 'queues')?.messages_in)).toBe(1)
  expect((await historyOf(server, '?range=day')).data.step_seconds).toBe(0.24)
})

test('MGMT-15 - calls, errors and latency of agents', async () => {
  const totals = new Map([
    ['slow', { calls: 0, errors: 0, seconds: 0 }],
    ['idle', { calls: 0, errors: 0, seconds: 0 }],
  ])
  const agents: AgentsPort = { list: () => [], deregister: async () => false, calls: () => totals }
  const server = await manage({ ...STEP, agents })
  await expect.poll(async () => (await historyOf(server)).data.steps).toBeGreaterThan(0)
  totals.set('slow', { calls: 4, errors: 1, seconds: 10 })
  const known = async () => (await historyOf(server)).data.agents
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
  expect((await historyOf(server, '?agent_id=slow')).data.agents).toHaveLength(1)
  expect((await historyOf(server, '?agent_id=idle')).data.agents).toEqual([])
  totals.delete('slow')
  await expect.poll(known).toEqual([])
})

test('MGMT-15 - an engine that fails leaves gaps', async () => {
  const server = await manage(STEP)
  const { engine } = server
  const waiting = async () => (await historyOf(server)).data.queues.waiting.at(-1)
  await expect.poll(waiting, READINGS).toBe(0)
  engine.stats = () => Promise.reject(new Error('away'))
  await expect.poll(waiting, READINGS).toBe(null)
}, 60_000)
