import { parsePolicy } from '@signalbox/broker-core'
import { afterEach, expect, test, vi } from 'vitest'

import { bury, SHOP } from './bury.ts'
import type { ManagementServer } from './management-server.ts'
import { manage, text } from './management-server.ts'

afterEach(() => vi.restoreAllMocks())

const ANY = { actions: '*', patterns: '*', effect: 'allow' }

test('redrive - a message goes back only to a queue that its sender may send to', async () => {
  const { act, broker, authorization } = await manage({
    policy: parsePolicy({
      rules: [
        { ...ANY, clients: 'mallory', channels: 'letters' },
        { ...ANY, clients: 'shop', channels: ['orders', 'letters'] },
      ],
    }),
  })
  const mallory = broker.as({ clientId: 'mallory' }).queues
  const forged = { dlq_source: 'orders', dlq_reason: 'max_receive_count', dlq_receive_count: '1' }
  await mallory.send('letters', { body: text('forged'), tags: forged })
  expect(await act('redrive_dead_letters', { channel: 'letters' })).toMatchObject({
    data: { redriven: 0, left: [{ reason: expect.stringContaining('it is not a dead letter') }] },
  })

  const shop = broker.as({ clientId: 'shop' }).queues
  await shop.send('orders', { body: text('late'), maxReceiveCount: 1, deadLetterQueue: 'letters' })
  await shop.nack((await shop.receive('orders')).map(({ receipt }) => receipt))
  authorization?.replace(parsePolicy({ rules: [{ ...ANY, clients: 'shop', channels: 'letters' }] }))
  const answer = await act('redrive_dead_letters', { channel: 'letters' })
  expect(answer.data.redriven).toBe(0)
  expect(answer.data.left[1].reason).toMatch(/^FORBIDDEN: .*"shop" send on queues "orders"/)
  expect(await shop.peek('letters', { maxMessages: 10 })).toHaveLength(2)
})

async function bodiesOf({ broker }: ManagementServer, channel: string): Promise<readonly string[]> {
  const messages = await broker.as(SHOP).queues.peek(channel, { maxMessages: 100 })
  return messages.map(({ body }) => new TextDecoder().decode(body))
}

async function ended({ get }: ManagementServer) {
  let item: { readonly state: string; readonly redriven: number; readonly error?: string } | undefined
  await expect.poll(async () => (item = (await get('/api/redrives')).data.items[0])?.state).not.toBe('running')
  return item
}

test.each(['start_redrive', 'redrive_dead_letters'])(
  'redrive - %s leaves messages that arrive after its start, also if other receivers take older ones',
  async (action) => {
    const server = await manage()
    const { act, broker, engine } = server
    await bury(broker, 'orders', ['a', 'b', 'c', 'd', 'e'])
    // Gaps between the sequences.
    const { queues } = broker.as(SHOP)
    const gone = await queues.receive('dead', { maxMessages: 4 })
    await queues.ack(gone.filter((_, i) => i !== 0).map(({ receipt }) => receipt))
    await queues.nack(gone.slice(0, 1).map(({ receipt }) => receipt))
    await bury(broker, 'orders', ['f'])
    const receive = engine.queues.receive.bind(engine.queues)
    vi.spyOn(engine.queues, 'receive').mockImplementationOnce(async (channel, options) => {
      vi.restoreAllMocks()
      await queues.receive('dead', { maxMessages: 2 })
      await bury(broker, 'orders', ['x', 'y'])
      return receive(channel, options)
    })
    await act(action, { channel: 'dead' })
    await ended(server)
    expect(await bodiesOf(server, 'orders')).toEqual(['f'])
    expect(await bodiesOf(server, 'dead')).toEqual(['x', 'y'])
    expect((await broker.as(SHOP).channels.info('queues', 'dead')).queue).toMatchObject({ waiting: 2, inFlight: 2 })
  },
)

test('redrive - a send that fails unexpectedly returns every other message at once', async () => {
  const server = await manage({ hooks: {} })
  const { act, broker, engine } = server
  await bury(broker, 'orders', ['a', 'b', 'c'])
  vi.spyOn(engine.queues, 'send').mockRejectedValueOnce(new Error('disk'))
  await act('start_redrive', { channel: 'dead' })
  expect(await ended(server)).toMatchObject({ state: 'failed', redriven: 2, error: 'INTERNAL: internal error' })
  expect(await bodiesOf(server, 'orders')).toEqual(['b', 'c'])
  expect((await broker.as(SHOP).channels.info('queues', 'dead')).queue).toMatchObject({ waiting: 1, inFlight: 0 })
})

test('redrive - a failed removal ends the redrive, and the messages that were not sent return at once', async () => {
  const server = await manage({ hooks: {} })
  const { act, broker, engine } = server
  await bury(
    broker,
    'orders',
    Array.from({ length: 100 }, (_, i) => `m${i}`),
  )
  vi.spyOn(engine.queues, 'ack').mockRejectedValueOnce(new Error('disk'))
  expect(await act('redrive_dead_letters', { channel: 'dead' })).toMatchObject({ data: { code: 'INTERNAL' } })
  expect(await bodiesOf(server, 'orders')).toHaveLength(64)
  expect((await broker.as(SHOP).channels.info('queues', 'dead')).queue).toMatchObject({ waiting: 36, inFlight: 64 })
})
