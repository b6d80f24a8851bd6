import { parsePolicy } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { bury, SHOP } from './bury.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

test('dead letters - they are counted by source and reason', async () => {
  const { get, broker } = await manage()
  await bury(broker, 'orders', ['a', 'b', 'c'])
  await bury(broker, 'bills', ['d'])
  await broker.as(SHOP).queues.send('dead', { body: text('no dead letter') })
  const { data } = await get('/api/dead_letters?channel=dead')
  expect(data).toMatchObject({ channel: 'dead', others: 1, examined: 5, next_sequence: null })
  expect(data.groups).toMatchObject([
    { source: 'orders', reason: 'max_receive_count', count: 3, oldest: expect.stringMatching(/Z$/) },
    { source: 'bills', reason: 'max_receive_count', count: 1 },
  ])
  expect(data.groups[0].ids).toHaveLength(3)
  expect((await get('/api/dead_letters?channel=dead&from_sequence=4')).data).toMatchObject({ examined: 2 })
  expect(await get('/api/dead_letters?channel=none')).toMatchObject({ data: { code: 'CHANNEL_NOT_FOUND' } })
})

test('dead letters - groups beyond the hundredth count as others', async () => {
  const { get, broker } = await manage()
  for (let i = 0; i < 102; i++) await bury(broker, `orders.${i}`, ['a'])
  const { data } = await get('/api/dead_letters?channel=dead')
  expect(data).toMatchObject({ others: 2, examined: 102 })
  expect(data.groups).toHaveLength(100)
})

test('dead letters - the queues that hold them are found, with their sources', async () => {
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

test('dead letters - a long list of queues continues with its cursor', async () => {
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
    names.push(...data.items.map(({ channel }: { channel: string }) => channel))
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
  expect(data.items.map((item: { body: string }) => item.body)).toEqual(['b', 'c'])
  const [, { id }] = data.items
  expect((await act('redrive_dead_letters', { channel: 'dead', ids: [id] })).data).toMatchObject({ redriven: 1 })
  const { queues } = broker.as(SHOP)
  expect(await queues.peek('bills')).toMatchObject([{ clientId: 'shop', tags: {}, deadLetterQueue: 'dead' }])
  expect(await queues.peek('dead', { maxMessages: 9 })).toHaveLength(1)
})

test('redrive - a rehearsal names what would stay', async () => {
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

test('redrive - an edited dead letter goes back under the name of the operator', async () => {
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

test('redrive - a started redrive shows its progress and what it left', async () => {
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
  await expect.poll(async () => (await list()).items[0].state, { timeout: 20_000 }).toBe('done')
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

test('redrive - a redrive is cancelled, and a shutdown returns the messages that it holds', async () => {
  const { act, api, broker } = await manage()
  for (let i = 0; i < 30; i++)
    await bury(
      broker,
      'orders',
      Array.from({ length: 100 }, (_, n) => `m${n}`),
    )
  const { data } = await act('start_redrive', { channel: 'dead', source: 'orders' })
  const cancelled = await act('cancel_redrive', { id: data.id })
  expect(cancelled.data).toMatchObject({ id: data.id, source: 'orders', ended_at: expect.any(String) })
  expect(['cancelled', 'done']).toContain(cancelled.data.state)
  expect(await act('cancel_redrive', { id: 'nobody' })).toMatchObject({ data: { code: 'REDRIVE_NOT_FOUND' } })
  await act('start_redrive', { channel: 'dead', source: 'elsewhere' })
  await api.finish()
  expect((await broker.as(SHOP).channels.info('queues', 'dead')).queue?.inFlight).toBe(0)
})

test('redrive - a node runs four redrives at a time', async () => {
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
