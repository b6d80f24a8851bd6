import { expect, test } from 'vitest'

import { bearer, manage, text, tokens } from './management-server.ts'

const SENDER = { clientId: 'shop' }

test('MGMT-9 - channels are created, purged and deleted', async () => {
  const { act, broker } = await manage()
  const queue = { channel: 'orders', type: 'queues' }
  expect(await act('create_channel', queue)).toMatchObject({ error: false, data: { ...queue, created: true } })
  expect(await act('create_channel', queue)).toMatchObject({ error: false, data: { ...queue, created: false } })
  await broker.as(SENDER).queues.sendBatch('orders', [{ body: text('a') }, { body: text('b'), delayMs: 60_000 }])
  expect(await act('purge_queue', { channel: 'orders' })).toMatchObject({ data: { channel: 'orders', purged: 2 } })
  expect(await act('purge_queue', { channel: 'orders' })).toMatchObject({ data: { purged: 0 } })
  expect(await act('delete_channel', queue)).toMatchObject({ error: false, data: queue })
  expect(await act('delete_channel', queue)).toMatchObject({ error: true, data: { code: 'CHANNEL_NOT_FOUND' } })
  expect(await act('purge_queue', { channel: 'orders' })).toMatchObject({
    error: true,
    data: { code: 'CHANNEL_NOT_FOUND' },
  })
})

test('MGMT-9 - queue messages are sent, peeked and received as by the tools', async () => {
  const { act, broker } = await manage({ authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  const sent = await act(
    'send_queue_message',
    { channel: 'q', body: 'a', metadata: 'm', tags: { k: 'v', message_id: '1' }, expiration_seconds: 60 },
    operator,
  )
  expect(sent).toMatchObject({ data: { channel: 'q', sequence: 1, duplicate: false } })
  const again = await act('send_queue_message', { channel: 'q', body: 'a', tags: { message_id: '1' } }, operator)
  expect(again).toMatchObject({ data: { id: sent.data.id, duplicate: true } })
  const message = {
    id: sent.data.id,
    sequence: 1,
    client_id: 'op',
    timestamp: expect.stringMatching(/Z$/),
    receive_count: 0,
    expires_at: expect.stringMatching(/Z$/),
    body: 'a',
    metadata: 'm',
    tags: { k: 'v', message_id: '1' },
  }
  expect(await act('peek_queue_messages', { channel: 'q', max_messages: 10 }, operator)).toMatchObject({
    data: { channel: 'q', messages: [message] },
  })
  expect(await act('receive_queue_messages', { channel: 'q', max_messages: 10 }, operator)).toMatchObject({
    data: { channel: 'q', messages: [{ ...message, receive_count: 1 }] },
  })
  await expect.poll(async () => (await broker.as(SENDER).channels.info('queues', 'q')).queue?.inFlight).toBe(0)
  expect(await act('peek_queue_messages', { channel: 'q', max_messages: 1 }, operator)).toMatchObject({
    data: { messages: [] },
  })
})

test('M14 - received messages are settled after the answer, and rejected if the client does not read it', async () => {
  const { act, broker, get, url } = await manage({ settleGraceMs: 60_000 })
  const { queues, channels } = broker.as(SENDER)
  const inFlight = async () => (await channels.info('queues', 'q')).queue?.inFlight
  await queues.send('q', { body: text('a') })
  const gone = new AbortController()
  const waiting = fetch(`${url}/api/actions/receive_queue_messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ channel: 'empty', max_messages: 1, wait_timeout_seconds: 60 }),
    signal: gone.signal,
  })
  const receivers = async () => (await get('/api/subscribers?type=queues&channel=empty')).data.items.length
  await expect.poll(receivers).toBe(1)
  gone.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await expect.poll(receivers).toBe(0)
  await queues.send('empty', { body: text('still here') })
  expect(await queues.peek('empty')).toHaveLength(1)
  expect(await act('receive_queue_messages', { channel: 'q', max_messages: 1 })).toMatchObject({
    data: { messages: [{ body: 'a' }] },
  })
  expect(await inFlight()).toBe(1)
  // The next request on the connection says that its client has read the answer.
  await expect
    .poll(async () => (await act('peek_queue_messages', { channel: 'q', max_messages: 1 })).error || (await inFlight()))
    .toBe(0)
})

test('MGMT-9 - events, commands and queries', async () => {
  const { act, broker } = await manage()
  const seen: string[] = []
  const service = broker.as({ clientId: 'service' })
  await service.events.subscribe('e', {}, ({ body }) => seen.push(new TextDecoder().decode(body)))
  await service.commands.subscribe('c', {}, ({ body }) => (body.byteLength > 1 ? { error: 'too long' } : {}))
  await service.queries.subscribe('q', {}, () => ({ body: new Uint8Array([0xff]), metadata: 'm', tags: { a: 'b' } }))
  expect(await act('publish_event', { channel: 'e', body: 'x' })).toMatchObject({
    error: false,
    data: { channel: 'e' },
  })
  await expect.poll(() => seen).toEqual(['x'])
  expect(await act('publish_event_store', { channel: 's', body: 'x' })).toMatchObject({
    data: { sequence: 1, duplicate: false },
  })
  expect(await act('send_command', { channel: 'c', body: 'x' })).toMatchObject({
    data: { channel: 'c', executed: true },
  })
  expect(await act('send_command', { channel: 'c', body: 'xx' })).toMatchObject({
    error: true,
    error_string: 'the subscriber rejected it: too long',
    data: { code: 'REQUEST_REJECTED', reason: 'too long' },
  })
  expect(await act('send_query', { channel: 'q', body: 'x' })).toMatchObject({
    data: { channel: 'q', body: '/w==', body_encoding: 'base64', metadata: 'm', tags: { a: 'b' } },
  })
  expect(await act('send_query', { channel: 'nobody', body: 'x', timeout_seconds: 1 })).toMatchObject({
    data: { code: 'NO_SUBSCRIBER' },
  })
})

test("SVC-2 - no wait exceeds the listener's response time-out", async () => {
  const { act } = await manage({ maxWaitMs: 100 })
  expect(await act('send_command', { channel: 'c', body: 'x', timeout_seconds: 3600 })).toMatchObject({
    data: { code: 'NO_SUBSCRIBER' },
  })
})

const RESERVED: Readonly<Record<string, object>> = {
  create_channel: { type: 'queues' },
  delete_channel: { type: 'events_store' },
  purge_queue: {},
  send_queue_message: { body: 'x' },
  receive_queue_messages: { max_messages: 1 },
  peek_queue_messages: { max_messages: 1 },
  publish_event: { body: 'x' },
  publish_event_store: { body: 'x' },
  send_command: { body: 'x' },
  send_query: { body: 'x' },
  redrive_dead_letters: {},
}

test('M8 - no action reaches a channel of the broker', async () => {
  const { act, system } = await manage()
  await system.eventsStore.publish('_AGENTS_.discovery', { body: text('kept') })
  for (const [action, args] of Object.entries(RESERVED)) {
    const { data } = await act(action, { channel: '_AGENTS_.discovery', ...args })
    expect([action, data.code]).toEqual([action, 'CHANNEL_RESERVED'])
  }
  const letters = await act('send_queue_message', {
    channel: 'a',
    body: 'x',
    dead_letter_queue: '_AGENTS_.x',
    max_receive_count: 1,
  })
  expect(letters).toMatchObject({ data: { code: 'CHANNEL_RESERVED' } })
  expect(await system.eventsStore.read('_AGENTS_.discovery', { maxMessages: 1 })).toHaveLength(1)
})

test('M7 - null for an optional argument equals leaving it out', async () => {
  const { act } = await manage()
  const sent = await act('send_queue_message', {
    channel: 'nulls',
    body: 'x',
    metadata: null,
    tags: null,
    delay_seconds: null,
    max_receive_count: null,
    dead_letter_queue: null,
  })
  expect(sent).toMatchObject({ error: false, data: { channel: 'nulls', sequence: 1 } })
  const required = await act('send_queue_message', { channel: 'nulls', body: null })
  expect(required).toMatchObject({ error: true, data: { problems: [{ argument: 'body', given: 'null' }] } })
  const unknown = await act('send_queue_message', { channel: 'nulls', body: 'x', color: null })
  expect(unknown).toMatchObject({ error: true, data: { problems: [{ argument: 'color' }] } })
})

test('M7 - invalid arguments are all reported, and nothing is changed', async () => {
  const { act, get } = await manage()
  const { error, error_string, data } = await act('send_queue_message', {
    channel: 'a..b',
    tags: { a: 1 },
    delay_seconds: '5',
    max_receive_count: -1,
    color: 'red',
  })
  expect([error, data.code]).toEqual([true, 'ARGUMENT_INVALID'])
  for (const name of ['channel', 'body is missing', 'tags.a', 'delay_seconds', 'max_receive_count', 'color is unknown'])
    expect(error_string).toContain(name)
  expect(data.problems).toHaveLength(6)
  const same = await act('send_queue_message', {
    channel: 'a',
    body: 'x',
    dead_letter_queue: 'a',
    max_receive_count: 1,
  })
  expect(same).toMatchObject({ data: { problems: [{ argument: 'dead_letter_queue' }] } })
  expect(await act('peek_queue_messages', { channel: 'a', max_messages: 101 })).toMatchObject({
    error_string: expect.stringContaining('a whole number from 1 to 100'),
  })
  expect(await act('create_channel', { channel: 'a', type: 'topics' })).toMatchObject({
    data: { code: 'ARGUMENT_INVALID' },
  })
  expect(await act('create_channel?force=true', { channel: 'a', type: 'queues' })).toMatchObject({
    data: { code: 'PARAMETER_INVALID' },
  })
  expect(await get('/v1/stats/channels')).toMatchObject({ data: { total: 0 } })
})
