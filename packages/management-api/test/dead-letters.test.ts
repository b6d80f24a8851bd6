import type { Broker } from '@signalbox/broker-core'
import { parsePolicy } from '@signalbox/broker-core'
import { afterEach, expect, test, vi } from 'vitest'

import type { ManagementServer } from './management-server.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

const SHOP = { clientId: 'shop' }

interface Groups {
  readonly groups: readonly { readonly ids: readonly string[] }[]
}

/** What an action that redrives has done. */
interface Redriven {
  readonly redriven: number
  readonly left: readonly { readonly reason: string }[]
}

/** A redrive in the list of the node. */
interface Redrive {
  readonly state: string
  readonly redriven: number
  readonly error?: string
}

/** Sends messages to a queue, from which they move to the queue `dead`. */
async function bury(broker: Broker, queue: string, bodies: readonly string[]): Promise<void> {
  const { queues } = broker.as(SHOP)
  await queues.sendBatch(
    queue,
    bodies.map((body) => ({ body: text(body), maxReceiveCount: 1, deadLetterQueue: 'dead' })),
  )
  const taken = await queues.receive(queue, { maxMessages: bodies.length })
  await queues.nack(taken.map(({ receipt }) => receipt))
}

afterEach(() => vi.restoreAllMocks())

test('dead letters - are counted by source and reason', async () => {
  const { get, broker } = await manage()
  await bury(broker, 'orders', ['a', 'b', 'c'])
  await bury(broker, 'bills', ['d'])
  await broker.as(SHOP).queues.send('dead', { body: text('no dead letter') })
  const { data } = await get<Groups>('/api/dead_letters?channel=dead')
  expect(data).toMatchObject({ channel: 'dead', others: 1, examined: 5, next_sequence: null })
  expect(data.groups).toMatchObject([
    { source: 'orders', reason: 'max_receive_count', count: 3, oldest: expect.stringMatching(/Z$/) },
    { source: 'bills', reason: 'max_receive_count', count: 1 },
  ])
  expect(data.groups[0]?.ids).toHaveLength(3)
  expect((await get('/api/dead_letters?channel=dead&from_sequence=4')).data).toMatchObject({ examined: 2 })
  expect(await get('/api/dead_letters?channel=none')).toMatchObject({ data: { code: 'CHANNEL_NOT_FOUND' } })
})

test('dead letters - groups beyond the hundredth count as others', async () => {
  const { get, broker } = await manage()
  for (let i = 0; i < 102; i++) await bury(broker, `orders.${i}`, ['a'])
  const { data } = await get<Groups>('/api/dead_letters?channel=dead')
  expect(data).toMatchObject({ others: 2, examined: 102 })
  expect(data.groups).toHaveLength(100)
})

test('dead letters - lists the queues that hold them, with their sources', async () => {
  const { get, broker } = await manage()
  const { queues } = broker.as(SHOP)
  expect((await get('/api/dead_letter_queues')).data).toMatchObject({ items: [], next_cursor: null, examined: 0 })
  await bury(broker, 'orders', ['a', 'b', 'c'])
  await bury(broker, 'bills', ['d'])
  await queues.send('dead', { body: text('no dead letter') })
  await queues.send('orders', { body: text('x') })
  await queues.send('abandoned', { body: text('x'), delayMs: 60_000 })
  // The states of the first question are used again, for twenty times as long as they took to read.
  await expect
    .poll(async () => (await get('/api/dead_letter_queues')).data, { timeout: 50_000 })
    .toMatchObject({
      next_cursor: null,
      examined: 2,
      complete: true,
      items: [
        {
          channel: 'dead',
          waiting: 5,
          in_flight: 0,
          oldest: expect.stringMatching(/Z$/),
          sources: [
            { source: 'orders', count: 3 },
            { source: 'bills', count: 1 },
          ],
          examined: 5,
        },
      ],
    })
  expect(await get('/api/dead_letter_queues?cursor=!')).toMatchObject({ data: { code: 'PARAMETER_INVALID' } })
}, 60_000)

test('dead letters - pages through a long list of queues by cursor', async () => {
  const { get, broker } = await manage()
  const { queues } = broker.as(SHOP)
  for (let i = 0; i < 150; i++) {
    const deadLetterQueue = `dead.${String(i).padStart(3, '0')}`
    await queues.send(`orders.${i}`, { body: text('x'), maxReceiveCount: 1, deadLetterQueue })
    const [taken] = await queues.receive(`orders.${i}`)
    await queues.nack(taken === undefined ? [] : [taken.receipt])
  }
  // A list that is not complete has gaps.
  await expect.poll(async () => (await get('/api/dead_letter_queues')).data.complete).toBe(true)
  const names: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 9; pages++) {
    const { data } = await get(`/api/dead_letter_queues${cursor}`)
    expect(data.items.length).toBeLessThanOrEqual(100)
    names.push(...data.items.map(({ channel }) => channel))
    if (data.next_cursor === null) break
    cursor = `?cursor=${data.next_cursor}`
  }
  expect(names).toHaveLength(150)
  expect(names).toEqual(names.toSorted())
})

test('redrive - a selection sends back its messages, and the others keep their places', async () => {
  const { act, get, broker } = await manage()
  await bury(broker, 'orders', ['a', 'b'])
  await bury(broker, 'bills', ['c'])
  const queue = { channel: 'dead', source: 'orders', reason: 'max_receive_count' }
  expect((await act('redrive_dead_letters', { ...queue, dry_run: true })).data).toEqual({
    channel: 'dead',
    redriven: 0,
    left: [],
    dry_run: true,
    would_redrive: 2,
    sources: [{ source: 'orders', count: 2 }],
  })
  expect((await act('redrive_dead_letters', { ...queue, reason: 'other' })).data).toMatchObject({ redriven: 0 })
  expect((await act('redrive_dead_letters', { ...queue, max_messages: 1 })).data).toEqual({
    channel: 'dead',
    redriven: 1,
    left: [],
  })
  const { data } = await get('/api/messages?type=queues&channel=dead')
  expect(data.items.map((item) => item.body)).toEqual(['b', 'c'])
  const id = data.items[1]?.id
  expect((await act('redrive_dead_letters', { channel: 'dead', ids: [id] })).data).toMatchObject({ redriven: 1 })
  const { queues } = broker.as(SHOP)
  expect(await queues.peek('bills')).toMatchObject([{ clientId: 'shop', tags: {}, deadLetterQueue: 'dead' }])
  expect(await queues.peek('dead', { maxMessages: 9 })).toHaveLength(1)
})

test('redrive - a dry run lists the messages that would stay', async () => {
  const { act, broker, authorization } = await manage({
    policy: parsePolicy({ rules: [{ clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }] }),
  })
  await bury(broker, 'orders', ['a'])
  await broker.as(SHOP).queues.send('dead', { body: text('x') })
  authorization?.replace(parsePolicy({ rules: [] }))
  const { data } = await act('redrive_dead_letters', { channel: 'dead', dry_run: true })
  expect(data).toMatchObject({
    would_redrive: 0,
    left: [
      { reason: 'FORBIDDEN: the policy does not let "shop" send on queues "orders"' },
      { reason: expect.stringContaining('it is not a dead letter') },
    ],
  })
})

test("redrive - an edited dead letter is sent back in the operator's name", async () => {
  const { act, broker } = await manage({ authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  await bury(broker, 'orders', ['wrong'])
  const { queues } = broker.as(SHOP)
  await queues.send('dead', { body: text('x') })
  const [letter, other] = await queues.peek('dead', { maxMessages: 2 })
  const edit = { channel: 'dead', id: letter?.id, body: 'right', tags: { fixed: 'yes' } }
  expect(await act('redrive_edited_message', edit, operator)).toMatchObject({
    error: false,
    data: { id: letter?.id, sources: [{ source: 'orders', count: 1 }] },
  })
  const [sent] = await queues.peek('orders')
  expect(sent).toMatchObject({ clientId: 'op', tags: { fixed: 'yes', resent_from: letter?.id }, maxReceiveCount: 1 })
  expect(new TextDecoder().decode(sent?.body)).toBe('right')
  expect(await act('redrive_edited_message', edit, operator)).toMatchObject({ data: { code: 'MESSAGE_NOT_FOUND' } })
  expect(await act('redrive_edited_message', { channel: 'dead', id: other?.id }, operator)).toMatchObject({
    error_string: expect.stringContaining('it is not a dead letter'),
    data: { code: 'REDRIVE_REFUSED', id: other?.id },
  })
})

test('redrive - a background redrive reports its progress and the messages that stay', async () => {
  const { act, get, broker } = await manage({ authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  await broker.as(SHOP).queues.send('dead', { body: text('x') })
  for (let i = 0; i < 12; i++)
    await bury(
      broker,
      'orders',
      Array.from({ length: 100 }, (_, n) => `m${n}`),
    )
  const started = await act('start_redrive', { channel: 'dead' }, operator)
  expect(started).toMatchObject({ data: { state: 'running', channel: 'dead', client: 'op', total: 1_201 } })
  const list = async () => (await get('/api/redrives', operator)).data
  await expect.poll(async () => (await list()).items[0]?.['state'], { timeout: 20_000 }).toBe('done')
  expect(await list()).toMatchObject({
    node: 'n1',
    items: [
      {
        id: started.data.id,
        examined: 1_201,
        redriven: 1_200,
        left_count: 1,
        left: [{ reason: expect.stringContaining('it is not a dead letter') }],
        ended_at: expect.stringMatching(/Z$/),
      },
    ],
  })
  const { channels } = broker.as(SHOP)
  expect((await channels.info('queues', 'orders')).queue?.waiting).toBe(1_200)
  expect((await channels.info('queues', 'dead')).queue).toMatchObject({ waiting: 1, inFlight: 0 })
})

test('redrive - can be cancelled, and a shutdown returns the messages that it leased', async () => {
  const { act, api, broker } = await manage()
  for (let i = 0; i < 30; i++)
    await bury(
      broker,
      'orders',
      Array.from({ length: 100 }, (_, n) => `m${n}`),
    )
  const { data } = await act('start_redrive', { channel: 'dead', source: 'orders' })
  const cancelled = await act<{ readonly state: string }>('cancel_redrive', { id: data.id })
  expect(cancelled.data).toMatchObject({ id: data.id, source: 'orders', ended_at: expect.any(String) })
  expect(['cancelled', 'done']).toContain(cancelled.data.state)
  expect(await act('cancel_redrive', { id: 'nobody' })).toMatchObject({ data: { code: 'REDRIVE_NOT_FOUND' } })
  await act('start_redrive', { channel: 'dead', source: 'elsewhere' })
  await api.finish()
  expect((await broker.as(SHOP).channels.info('queues', 'dead')).queue?.inFlight).toBe(0)
})

test('redrive - a node runs at most four redrives', async () => {
  const { act, broker, engine } = await manage()
  await bury(broker, 'orders', ['a'])
  const receive = engine.queues.receive.bind(engine.queues)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  engine.queues.receive = async (channel, options) => {
    await released
    return receive(channel, options)
  }
  const answers = await Promise.all(Array.from({ length: 5 }, () => act('start_redrive', { channel: 'dead' })))
  expect(answers.filter(({ error }) => error)).toMatchObject([{ data: { code: 'REDRIVE_LIMIT', limit: 4 } }])
  release()
})

/** A dead letter of `source` in `letters`, by the way that dead letters come. */
async function deadLetter({ broker }: ManagementServer, source: string, body: string, tags = {}): Promise<void> {
  const { queues } = broker.as(SHOP)
  await queues.send(source, { body: text(body), metadata: 'm', tags, maxReceiveCount: 1, deadLetterQueue: 'letters' })
  const deliveries = await queues.receive(source)
  await queues.nack(deliveries.map(({ receipt }) => receipt))
}

test('MGMT-11 - a redrive returns dead letters unchanged to their source queues', async () => {
  const server = await manage()
  const { act, broker } = server
  await deadLetter(server, 'a', 'one', { k: 'v' })
  await deadLetter(server, 'b', 'two')
  await deadLetter(server, 'a', 'three')
  const { queues } = broker.as(SHOP)
  await queues.send('letters', { body: text('no dead letter') })
  expect(await act('redrive_dead_letters', { channel: 'letters', max_messages: 2 })).toMatchObject({
    data: { redriven: 2, left: [] },
  })
  expect(await act('redrive_dead_letters', { channel: 'letters' })).toMatchObject({
    error: false,
    data: { channel: 'letters', redriven: 1, left: [{ reason: expect.stringContaining('dlq_source') }] },
  })
  expect((await queues.peek('a', { maxMessages: 10 })).map(({ body }) => new TextDecoder().decode(body))).toEqual([
    'one',
    'three',
  ])
  expect(await queues.peek('letters', { maxMessages: 10 })).toHaveLength(1)
  const [first] = await queues.receive('a')
  expect(first?.message).toMatchObject({
    clientId: 'shop',
    metadata: 'm',
    tags: { k: 'v' },
    maxReceiveCount: 1,
    deadLetterQueue: 'letters',
  })
  await queues.nack([first?.receipt ?? ''])
  expect(await queues.peek('letters', { maxMessages: 10 })).toHaveLength(2)
  expect(await act('redrive_dead_letters', { channel: 'nobody' })).toMatchObject({
    data: { code: 'CHANNEL_NOT_FOUND' },
  })
})

test('MGMT-11 - a message with a message_id can be redriven at once, and again', async () => {
  const server = await manage()
  const { act, broker } = server
  const { queues } = broker.as(SHOP)
  await deadLetter(server, 'a', 'once', { message_id: '1' })
  for (let time = 1; time <= 2; time++) {
    expect(await act('redrive_dead_letters', { channel: 'letters' })).toMatchObject({ data: { redriven: 1, left: [] } })
    const [delivery] = await queues.receive('a')
    expect(delivery?.message.tags).toEqual({ message_id: '1' })
    await queues.nack([delivery?.receipt ?? ''])
    expect(await queues.peek('letters', { maxMessages: 10 })).toHaveLength(1)
  }
  // The sender's own repeat is still recognized.
  expect(await queues.send('a', { body: text('once'), tags: { message_id: '1' } })).toMatchObject({ duplicate: true })
})

test('MGMT-11 - a message that its queue refuses stays a dead letter', async () => {
  const server = await manage()
  const { act, broker } = server
  const { queues } = broker.as(SHOP)
  // As an older version stored it, which took any tag.
  await server.engine.queues.send('letters', {
    id: 'old',
    clientId: 'shop',
    body: text('forged'),
    metadata: '',
    delayMs: 0,
    expirationMs: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
    tags: { dlq_source: '_AGENTS_.x', dlq_reason: 'x' },
  })
  expect(await act('redrive_dead_letters', { channel: 'letters' })).toMatchObject({
    data: {
      redriven: 0,
      left: [{ reason: expect.stringContaining('CHANNEL_RESERVED') }],
    },
  })
  expect(await queues.peek('letters', { maxMessages: 10 })).toHaveLength(1)
  expect(await queues.peek('a')).toHaveLength(0)
})

const ANY = { actions: '*', patterns: '*', effect: 'allow' }

test('redrive - sends a message back only if the policy lets its sender send', async () => {
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
  const answer = await act<Redriven>('redrive_dead_letters', { channel: 'letters' })
  expect(answer.data.redriven).toBe(0)
  expect(answer.data.left[1]?.reason).toMatch(/^FORBIDDEN: .*"shop" send on queues "orders"/)
  expect(await shop.peek('letters', { maxMessages: 10 })).toHaveLength(2)
})

async function bodiesOf({ broker }: ManagementServer, channel: string): Promise<readonly string[]> {
  const messages = await broker.as(SHOP).queues.peek(channel, { maxMessages: 100 })
  return messages.map(({ body }) => new TextDecoder().decode(body))
}

async function ended({ get }: ManagementServer) {
  let item: Redrive | undefined
  const first = async () => (await get<{ readonly items: readonly Redrive[] }>('/api/redrives')).data.items[0]
  await expect.poll(async () => (item = await first())?.state).not.toBe('running')
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
