import { expect, test } from 'vitest'

import { bearer, manage, text, tokens } from './management-server.ts'

const SENDER = { clientId: 'shop' }

interface Page {
  readonly items: readonly { readonly sequence: number }[]
  readonly next_sequence: number | null
}

interface Shown {
  readonly body: string
  readonly metadata: string
  readonly tags: Readonly<Record<string, string>>
}

test('messages - a queue is read in pages, with bodies cut to a size', async () => {
  const { get, broker } = await manage()
  const { queues } = broker.as(SENDER)
  const bodies = ['aaaa', 'bbbb', 'ccéc', 'dddd']
  await queues.sendBatch(
    'orders',
    bodies.map((body) => ({ body: text(body), tags: { shop: 'north' } })),
  )
  const first = await get('/api/messages?type=queues&channel=orders&limit=3&max_body_size=3')
  expect(first).toMatchObject({
    error: false,
    data: {
      type: 'queues',
      channel: 'orders',
      examined: 3,
      next_sequence: 4,
      items: [
        {
          sequence: 1,
          client_id: 'shop',
          body: 'aaa',
          body_size: 4,
          truncated: true,
          receive_count: 0,
          expires_at: null,
        },
        { sequence: 2, tags: { shop: 'north' }, tag_count: 1 },
        { sequence: 3, body: 'cc', body_size: 5 },
      ],
    },
  })
  expect(await get('/api/messages?type=queues&channel=orders&from_sequence=4')).toMatchObject({
    data: { items: [{ sequence: 4, body: 'dddd', truncated: false }], next_sequence: null },
  })
  expect((await queues.receive('orders', { maxMessages: 9 })).map(({ message }) => message.receiveCount)).toEqual([
    1, 1, 1, 1,
  ])
})

test('messages - an events store is read by sequence, by time and from its end', async () => {
  const { get, broker } = await manage()
  const { eventsStore } = broker.as(SENDER)
  for (let i = 1; i <= 5; i++) await eventsStore.publish('log', { body: text(`entry ${i}`) })
  const sequences = async (query: string): Promise<readonly (number | null)[]> => {
    const { data } = await get<Page>(`/api/messages?type=events_store&channel=log&${query}`)
    return [...data.items.map((item) => item.sequence), data.next_sequence]
  }
  expect(await sequences('limit=2')).toEqual([1, 2, 3])
  expect(await sequences('from_sequence=3')).toEqual([3, 4, 5, null])
  expect(await sequences('order=newest&limit=2')).toEqual([5, 4, 3])
  expect(await sequences('order=newest&from_sequence=3')).toEqual([3, 2, 1, null])
  expect(await sequences('from_time=2020-01-01T00:00:00Z&limit=1')).toEqual([1, 2])
  expect(await sequences('from_time=2999-01-01T00:00:00Z')).toEqual([null])
})

test('messages - a search covers ids, senders, metadata, tags and bodies, in upper or lower case', async () => {
  const { get, broker } = await manage()
  await broker
    .as(SENDER)
    .queues.sendBatch('q', [
      { body: text('Two COFFEES') },
      { body: text('tea'), tags: { Drink: 'coffee' } },
      { body: text('milk'), metadata: 'no coffee' },
      { body: new Uint8Array([255, 254]) },
    ])
  await broker.as({ clientId: 'coffee-shop' }).queues.send('q', { body: text('water') })
  const found = await get('/api/messages?type=queues&channel=q&search=cOFFee&max_body_size=0')
  expect(found.data.items.map((item) => item.sequence)).toEqual([1, 2, 3, 5])
  expect(found.data).toMatchObject({ examined: 5, next_sequence: null })
  expect(found.data.items[0]).toMatchObject({ body: '', truncated: true })
})

test('messages - a search finds a text anywhere in a long body', async () => {
  const { get, broker } = await manage()
  const { queues } = broker.as(SENDER)
  for (const before of [262_138, 262_144, 524_285]) {
    await queues.send('q', { body: text(`${'x'.repeat(before)}Needle${'y'.repeat(300_000)}`) })
  }
  await queues.send('q', { body: text('x'.repeat(600_000)) })
  const found = await get('/api/messages?type=queues&channel=q&search=nEEDLE&max_body_size=0')
  expect(found.data.items.map((item) => item.sequence)).toEqual([1, 2, 3])
})

test('messages - a search ends after 10,000 messages and says where it continues', async () => {
  const { get, broker } = await manage()
  const { queues } = broker.as(SENDER)
  const batch = Array.from({ length: 1_000 }, () => ({ body: text('x') }))
  for (let i = 0; i < 10; i++) await queues.sendBatch('q', batch)
  await queues.send('q', { body: text('needle') })
  const page = '/api/messages?type=queues&channel=q&search=needle'
  expect(await get(page)).toMatchObject({ data: { items: [], examined: 10_000, next_sequence: 10_001 } })
  expect(await get(`${page}&from_sequence=10001`)).toMatchObject({
    data: { items: [{ body: 'needle' }], examined: 1, next_sequence: null },
  })
})

test('messages - one message is shown whole, by sequence or by id', async () => {
  const { get, broker } = await manage()
  const { queues, eventsStore } = broker.as(SENDER)
  const tags = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`tag ${i}`, '<img onerror=alert(1)>']))
  const { id } = await queues.send('q', { body: text('x'.repeat(200_000)), metadata: 'm'.repeat(2_000), tags })
  const { data } = await get<{ readonly items: readonly Shown[] }>('/api/messages?type=queues&channel=q')
  const [first] = data.items
  expect(first).toMatchObject({ tag_count: 256, truncated: true })
  expect(Object.keys(first?.tags ?? {})).toHaveLength(64)
  expect(first?.metadata).toHaveLength(1_024)
  for (const query of ['sequence=1', `id=${id}`, `sequence=1&id=${id}`]) {
    const { message } = (await get<{ readonly message: Shown }>(`/api/message?type=queues&channel=q&${query}`)).data
    expect(message).toMatchObject({ id, metadata: 'm'.repeat(2_000), tags, truncated: false })
    expect(message.body).toHaveLength(200_000)
  }
  await eventsStore.publish('s', { body: new Uint8Array([255]) })
  expect(await get('/api/message?type=events_store&channel=s&sequence=1')).toMatchObject({
    data: { message: { body: '/w==', body_encoding: 'base64' } },
  })
  for (const query of ['sequence=2', 'sequence=1&id=other', 'id=other']) {
    expect(await get(`/api/message?type=queues&channel=q&${query}`)).toMatchObject({
      status: 200,
      error: true,
      error_string: expect.stringContaining('shows no message with'),
      data: { code: 'MESSAGE_NOT_FOUND' },
    })
  }
})

test('messages - refuses conflicting parameters and unknown channels', async () => {
  const { get } = await manage()
  for (const [query, text_] of [
    ['type=queues&channel=q&order=newest', 'oldest for the type queues'],
    ['type=queues&channel=q&from_time=2020-01-01T00:00:00Z', 'given for the type events_store'],
    ['type=events_store&channel=q&from_time=2020-01-01T00:00:00Z&from_sequence=1', 'without from_sequence'],
    ['type=events&channel=q', 'type'],
  ]) {
    expect(await get(`/api/messages?${query}`)).toMatchObject({
      error: true,
      error_string: expect.stringContaining(String(text_)),
      data: { code: 'PARAMETER_INVALID' },
    })
  }
  expect(await get('/api/message?type=queues&channel=q')).toMatchObject({ data: { code: 'PARAMETER_INVALID' } })
  expect(await get('/api/messages?type=queues&channel=q')).toMatchObject({ data: { code: 'CHANNEL_NOT_FOUND' } })
  expect(await get('/api/messages?type=events_store&channel=_AGENTS_.audit')).toMatchObject({
    data: { code: 'CHANNEL_RESERVED' },
  })
})

test('resend - a copy refers to its original, which stays', async () => {
  const { act, get, broker } = await manage({ authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  const sent = await broker.as(SENDER).queues.send('q', {
    body: text('one'),
    metadata: 'm',
    tags: { message_id: '7', dlq_source: 'x' },
  })
  const copy = await act('resend_message', { type: 'queues', channel: 'q', sequence: 1 }, operator)
  expect(copy).toMatchObject({ error: false, data: { channel: 'q', sequence: 2, resent_from: sent.id } })
  const edited = { type: 'queues', channel: 'q', sequence: 1, to: 'r', body: '/w==', body_encoding: 'base64', tags: {} }
  expect(await act('resend_message', edited, operator)).toMatchObject({ data: { channel: 'r', sequence: 1 } })
  const { data } = await get('/api/messages?type=queues&channel=q', operator)
  expect(data.items).toMatchObject([
    { client_id: 'shop', id: sent.id, body: 'one' },
    { client_id: 'op', body: 'one', metadata: 'm', tags: { message_id: '7', resent_from: sent.id } },
  ])
  expect(await get('/api/message?type=queues&channel=r&sequence=1', operator)).toMatchObject({
    data: { message: { body: '/w==', body_encoding: 'base64', tags: { resent_from: sent.id }, tag_count: 1 } },
  })
  await expect
    .poll(async () => (await get('/api/audit?action=resend_message', operator)).data.items.length)
    .toBeGreaterThanOrEqual(2)
})

test('resend - appends events again, and reports invalid arguments', async () => {
  const { act, broker } = await manage()
  await broker.as(SENDER).eventsStore.publish('s', { body: text('a'), tags: { message_id: '1' } })
  const event = { type: 'events_store', channel: 's', sequence: 1 }
  expect(await act('resend_message', event)).toMatchObject({ data: { sequence: 2 } })
  expect(await act('resend_message', { ...event, sequence: 9 })).toMatchObject({ data: { code: 'MESSAGE_NOT_FOUND' } })
  for (const wrong of [
    { body: 'no', body_encoding: 'base64' },
    { body_encoding: 'base64' },
    { tags: { a: '\ud800' } },
  ]) {
    expect(await act('resend_message', { ...event, ...wrong })).toMatchObject({ data: { code: 'ARGUMENT_INVALID' } })
  }
})

test('dry runs - a purge and a delete count what they would remove, and change nothing', async () => {
  const { act, broker } = await manage()
  const { channels, queues, eventsStore } = broker.as(SENDER)
  await queues.sendBatch('q', [{ body: text('a') }, { body: text('b') }, { body: text('c'), delayMs: 60_000 }])
  await queues.receive('q')
  expect(await act('purge_queue', { channel: 'q', dry_run: true })).toMatchObject({
    data: { channel: 'q', purged: 0, dry_run: true, would_purge: 2, in_flight: 1 },
  })
  const queue = { channel: 'q', type: 'queues' }
  expect(await act('delete_channel', { ...queue, dry_run: true })).toMatchObject({
    data: { ...queue, dry_run: true, would_delete: { messages: 3, in_flight: 1, subscribers: 0 } },
  })
  await eventsStore.publish('s', { body: text('x') })
  expect(await act('delete_channel', { channel: 's', type: 'events_store', dry_run: true })).toMatchObject({
    data: { would_delete: { messages: 1, in_flight: 0 } },
  })
  expect((await channels.info('queues', 'q')).queue).toMatchObject({ waiting: 1, delayed: 1, inFlight: 1 })
  expect((await act('purge_queue', { channel: 'q' })).data).toEqual({ channel: 'q', purged: 2 })
  expect((await act('delete_channel', queue)).data).toEqual(queue)
  for (const action of ['purge_queue', 'delete_channel']) {
    const args = action === 'purge_queue' ? { channel: 'none' } : { channel: 'none', type: 'queues' }
    expect(await act(action, { ...args, dry_run: true })).toMatchObject({ data: { code: 'CHANNEL_NOT_FOUND' } })
  }
})
