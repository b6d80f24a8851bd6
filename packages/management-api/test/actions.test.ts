import { expect, test } from 'vitest'

import type { AgentStatus } from '../src/index.ts'
import type { ManagementServer } from './management-server.ts'
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

test('MGMT-9 - queue messages are sent, shown and taken as by the tools', async () => {
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

test('SVC-2 - no wait outlives the time that the listener gives a response', async () => {
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

test('M7 - null for an optional argument is the same as leaving it out', async () => {
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

test('M7 - arguments are strict, every problem is named, and nothing happens', async () => {
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

const AGENT: AgentStatus = {
  agent_id: 'writer',
  name: 'Writer',
  version: '1',
  url: 'http://127.0.0.1:1',
  registered_by: 'owner',
  registered_at: Date.UTC(2026, 0, 1),
  last_seen: Date.UTC(2026, 0, 2),
  expires_at: Date.UTC(2026, 0, 3),
  in_flight: 2,
}

test('MGMT-10 - agents are listed with liveness and requests in flight, and an Admin removes them', async () => {
  const agents = new Map(
    [AGENT, { ...AGENT, agent_id: 'reader', expires_at: null }].map((agent) => [agent.agent_id, agent]),
  )
  const removed: string[] = []
  const { get, act } = await manage({
    authenticator: tokens(),
    agents: {
      list: () => [...agents.values()],
      deregister: async (agentId, { clientId }) => {
        removed.push(`${agentId} by ${clientId}`)
        return agents.delete(agentId)
      },
    },
  })
  const admin = bearer('root:Admin')
  expect(await get('/api/agents?limit=1', admin)).toMatchObject({
    data: {
      items: [{ agent_id: 'reader', expires_at: null, is_alive: true }],
      total: 2,
      next_cursor: expect.any(String),
    },
  })
  const { data } = await get('/api/agents', admin)
  expect(data.items[1]).toEqual({
    ...AGENT,
    registered_at: '2026-01-01T00:00:00.000Z',
    last_seen: '2026-01-02T00:00:00.000Z',
    expires_at: '2026-01-03T00:00:00.000Z',
    is_alive: false,
  })
  expect(await get('/api/snapshot', admin)).toMatchObject({ data: { agents: { registered: 2, in_flight: 4 } } })
  expect(await act('deregister_agent', { agent_id: 'writer' }, admin)).toMatchObject({
    error: false,
    data: { agent_id: 'writer' },
  })
  expect(await act('deregister_agent', { agent_id: 'writer' }, admin)).toMatchObject({
    data: { code: 'AGENT_NOT_FOUND' },
  })
  expect(removed).toEqual(['writer by root', 'writer by root'])
})

/** A dead letter of `source` in `letters`, by the way that dead letters come. */
async function deadLetter({ broker }: ManagementServer, source: string, body: string, tags = {}): Promise<void> {
  const { queues } = broker.as(SENDER)
  await queues.send(source, { body: text(body), metadata: 'm', tags, maxReceiveCount: 1, deadLetterQueue: 'letters' })
  const deliveries = await queues.receive(source)
  await queues.nack(deliveries.map(({ receipt }) => receipt))
}

test('MGMT-11 - dead letters go back to where they came from, as they were', async () => {
  const server = await manage()
  const { act, broker } = server
  await deadLetter(server, 'a', 'one', { k: 'v' })
  await deadLetter(server, 'b', 'two')
  await deadLetter(server, 'a', 'three')
  const { queues } = broker.as(SENDER)
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
  const { queues } = broker.as(SENDER)
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

test('MGMT-11 - a redrive loses nothing: a message that its queue refuses stays a dead letter', async () => {
  const server = await manage()
  const { act, broker } = server
  const { queues } = broker.as(SENDER)
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

test.each([
  ['pause_webhook', {}],
  ['resume_webhook', {}],
  ['test_webhook', {}],
  ['redeliver_webhook', { sequence: 1 }],
  ['rotate_webhook_secret', {}],
])('actions - %s names a subscription that does not exist', async (action, more) => {
  const { act } = await manage()
  expect(await act(action, { id: 'nobody', ...more })).toMatchObject({
    error: true,
    data: { code: 'WEBHOOK_NOT_FOUND', id: 'nobody' },
  })
})
