import { ANONYMOUS, Authorization, createBroker, encodeText, parsePolicy } from '@signalbox/broker-core'
import type { ReplyInput } from '@signalbox/broker-core'
import { IdempotencyKeys, requestLog } from '@signalbox/broker-core/internal'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { AuthenticationError } from '@signalbox/http-kit'
import type { Authenticator } from '@signalbox/http-kit'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { eventDigest } from '../src/routes/send-once.ts'
import { event, openCe } from './ce-server.ts'
import type { CeAnswer, CeServer } from './ce-server.ts'

type Answering = (runs: number) => ReplyInput | Promise<ReplyInput>

/** Counts the requests that a responder of `commands c` and `queries c` gets. */
async function serve(
  { user }: CeServer,
  answering: Answering = (runs) => ({ body: encodeText(`run ${runs}`) }),
): Promise<{ readonly runs: number; close(): Promise<void> }> {
  const served = { runs: 0, close: async () => {} }
  const subscriptions = await Promise.all(
    [user.commands, user.queries].map((requests) => requests.subscribe('c', {}, () => answering(++served.runs))),
  )
  served.close = async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.close()))
  }
  return served
}

function keyed(key: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { 'idempotency-key': key, ...more }
}

function isReplay({ headers }: CeAnswer): boolean {
  return headers.get('idempotency-replayed') === 'true'
}

/** Believes the name that a caller gives. */
const byName: Authenticator = {
  authenticate({ headers }) {
    const name = headers.authorization?.replace('Bearer ', '')
    if (!name) throw new AuthenticationError('no name')
    return { clientId: name }
  },
}

const REPLIES: readonly [string, ReplyInput][] = [
  ['text', { body: encodeText('x'), metadata: 'm', tags: { message_id: '1', outcome: 'mine', digest: 'mine' } }],
  ['bytes', { body: new Uint8Array([255, 0]) }],
  [
    'an event',
    { body: encodeText('{"n":1.0}'), tags: { ce_specversion: '1.0', ce_id: 'a', ce_source: '/s', ce_type: 't' } },
  ],
  ['a rejection', { error: 'out of stock' }],
  ['nothing', {}],
]

test.each(REPLIES)(
  'CE-25 - idempotency: a repeat gets the same bytes, and the responder runs once: %s',
  async (_, reply) => {
    const server = await openCe({ relays: true })
    const served = await serve(server, () => reply)
    for (const route of ['send/command?channel=c', 'send/query?channel=c']) {
      const first = await server.post(route, event(), keyed('k'))
      const again = await server.post(route, event(), keyed('k'))
      expect([again.status, again.text]).toEqual([first.status, first.text])
      expect([isReplay(first), isReplay(again)]).toEqual([false, true])
    }
    expect(served.runs).toBe(2)
  },
)

test('CE-25 - idempotency: a repeat may have another id, time, time-out and content mode', async () => {
  const server = await openCe({ relays: true })
  const served = await serve(server)
  const data = { order: 7, note: 'é' }
  const first = await server.post(
    'send/query?channel=c',
    event({ count: 7, on: true, time: '2026-01-31T09:30:00Z', traceparent: '00-1', data }),
    keyed('k'),
  )
  const binary = await server.post('send/query?channel=c&timeout=5', JSON.stringify(data), {
    ...keyed('k'),
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-type': 'com.example.test',
    'ce-source': '/test',
    'ce-id': 'another',
    'ce-on': 'true',
    'ce-count': '7',
  })
  expect([binary.status, binary.text, isReplay(binary)]).toEqual([200, first.text, true])
  expect(served.runs).toBe(1)
})

test('CE-25 - idempotency: a key with another event is 422, and a key belongs to one channel and one kind of request', async () => {
  const server = await openCe({ relays: true })
  const served = await serve(server)
  await server.post('send/command?channel=c', event(), keyed('k'))
  for (const other of [{ data: 1 }, { type: 'other' }, { source: '/other' }, { extension: 'x' }]) {
    expect(await server.post('send/command?channel=c', event(other), keyed('k'))).toMatchObject({
      status: 422,
      is_error: true,
      data: { code: 'IDEMPOTENCY_KEY_REUSED' },
    })
  }
  expect(served.runs).toBe(1)
  expect(await server.post('send/query?channel=c', event({ data: 1 }), keyed('k'))).toMatchObject({ status: 200 })
  await server.user.commands.subscribe('other', {}, () => ({}))
  expect(await server.post('send/command?channel=other', event({ data: 1 }), keyed('k'))).toMatchObject({ status: 202 })
  expect(served.runs).toBe(2)
})

test('CE-25 - idempotency: requests without a key run each time', async () => {
  const server = await openCe({ relays: true })
  const served = await serve(server)
  const answers = [1, 2].map(() => server.post('send/query?channel=c', event()))
  expect((await Promise.all(answers)).some(isReplay)).toBe(false)
  expect(served.runs).toBe(2)
})

test('CE-25 - idempotency: the key of one caller has no effect on another', async () => {
  const server = await openCe({ relays: true, authenticator: byName })
  const served = await serve(server)
  const ask = (name: string, more = {}) =>
    server.post('send/query?channel=c', event(more), keyed('k', { authorization: `Bearer ${name}` }))
  expect((await ask('ann')).data).toMatchObject({ data: 'run 1' })
  const bob = await ask('bob')
  expect(bob.data).toMatchObject({ data: 'run 2' })
  expect(isReplay(bob)).toBe(false)
  expect(await ask('carol', { data: 'other' })).toMatchObject({ status: 200, data: { data: 'run 3' } })
  expect((await ask('ann')).data).toMatchObject({ data: 'run 1' })
  expect(served.runs).toBe(3)
})

test('CE-25 - idempotency: a caller without permission gets the same refusal with and without a key, and claims none', async () => {
  const rules = [{ clients: 'ann', actions: '*', patterns: '*', channels: '*', effect: 'allow' }]
  const authorization = new Authorization(parsePolicy({ rules }))
  const server = await openCe({ relays: true, authenticator: byName, authorization })
  const bob = { authorization: 'Bearer bob' }
  const [plain, withKey] = await Promise.all([
    server.post('send/command?channel=c', event(), bob),
    server.post('send/command?channel=c', event(), keyed('k', bob)),
  ])
  expect(plain).toMatchObject({ status: 403, data: { code: 'FORBIDDEN' } })
  expect([withKey.status, withKey.text]).toEqual([plain.status, plain.text])
  expect(await server.system.channels.list()).toEqual([])
})

test('CE-25 - idempotency: a repeat during the first request waits for its answer', async () => {
  const server = await openCe({ relays: true })
  const answering = Promise.withResolvers<ReplyInput>()
  const served = await serve(server, () => answering.promise)
  const first = server.post('send/query?channel=c', event(), keyed('k'))
  await until(() => served.runs === 1)
  const repeats = [1, 2, 3].map(() => server.post('send/query?channel=c', event(), keyed('k')))
  const other = await server.post('send/query?channel=c', event({ data: 1 }), keyed('k'))
  expect(other).toMatchObject({ status: 422 })
  answering.resolve({ body: encodeText('done') })
  const answers = await Promise.all([first, ...repeats])
  expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(() => [200, answers[0]?.text]))
  expect(answers.map(isReplay)).toEqual([false, true, true, true])
  expect(served.runs).toBe(1)
})

test('CE-25 - idempotency: a repeat that waits longer than its time-out is 503, and a later one gets the answer', async () => {
  const server = await openCe({ relays: true })
  const answering = Promise.withResolvers<ReplyInput>()
  const served = await serve(server, () => answering.promise)
  const first = server.post('send/command?channel=c', event(), keyed('k'))
  await until(() => served.runs === 1)
  expect(await server.post('send/command?channel=c&timeout=1', event(), keyed('k'))).toMatchObject({
    status: 503,
    data: { code: 'REQUEST_TIMEOUT', timeoutMs: 1000 },
  })
  answering.resolve({})
  expect(await first).toMatchObject({ status: 202, is_error: false })
  expect(isReplay(await server.post('send/command?channel=c', event(), keyed('k')))).toBe(true)
})

const UNKNOWN = { status: 409, is_error: true, data: { code: 'OUTCOME_UNKNOWN' } }

test('CE-25 - idempotency: a request that timed out is not sent again: a repeat is 409', async () => {
  const server = await openCe({ relays: true, timeoutSeconds: 0.2 })
  const never = new Promise<ReplyInput>(() => {})
  const served = await serve(server, (runs) => (runs === 1 ? never : {}))
  expect(await server.post('send/command?channel=c', event(), keyed('k'))).toMatchObject({
    status: 503,
    data: { code: 'REQUEST_TIMEOUT' },
  })
  for (let i = 0; i < 2; i++) {
    expect(await server.post('send/command?channel=c', event(), keyed('k'))).toMatchObject(UNKNOWN)
  }
  expect(served.runs).toBe(1)
  expect(await server.post('send/command?channel=c', event(), keyed('new'))).toMatchObject({ status: 202 })
})

test('CE-25 - idempotency: a request of a node that died is 409 from 10 s after its deadline on, and is not sent again', async () => {
  const server = await openCe({ relays: true, timeoutSeconds: 0.3 })
  const served = await serve(server)
  const keys = new IdempotencyKeys(requestLog(server.system), 86_400_000)
  const digest = eventDigest({
    body: '',
    tags: { ce_specversion: '1.0', ce_source: '/test', ce_type: 'com.example.test' },
  })
  const claim = (key: string, overMs: number) => {
    const request = { kind: 'commands', target: 'c', callerId: ANONYMOUS.clientId, key, digest }
    return keys.claim(request, 'run', Date.now() - overMs)
  }
  await claim('over', 10_001)
  expect(await server.post('send/command?channel=c', event(), keyed('over'))).toMatchObject(UNKNOWN)
  await claim('just-over', 9_900)
  expect(await server.post('send/command?channel=c', event(), keyed('just-over'))).toMatchObject(UNKNOWN)
  await claim('running', 5_000)
  expect(await server.post('send/command?channel=c', event(), keyed('running'))).toMatchObject({
    status: 503,
    data: { code: 'REQUEST_TIMEOUT' },
  })
  expect(served.runs).toBe(0)
})

test('CE-25 - idempotency: a request without a responder is sent again by a repeat, also by one that waits', async () => {
  const server = await openCe({ relays: true, timeoutSeconds: 0.2 })
  const none = await server.post('send/query?channel=c', event(), keyed('k'))
  expect(none).toMatchObject({ status: 503, data: { code: 'NO_SUBSCRIBER' } })
  const first = server.post('send/query?channel=c&timeout=1', event(), keyed('k'))
  const waiting = server.post('send/query?channel=c&timeout=20', event(), keyed('k'))
  expect(await first).toMatchObject({ status: 503, data: { code: 'NO_SUBSCRIBER' } })
  const served = await serve(server)
  expect(await waiting).toMatchObject({ status: 200, data: { data: 'run 1' } })
  expect(served.runs).toBe(1)
})

/** Sends a query with the key, and disconnects when the condition holds. */
async function leaveWhen({ base }: CeServer, condition: () => boolean | Promise<boolean>): Promise<void> {
  const leaving = new AbortController()
  const left = fetch(`${base}/ce/send/query?channel=c`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json', ...keyed('k') },
    body: JSON.stringify(event()),
    signal: leaving.signal,
  })
  left.catch(() => {})
  await until(condition)
  leaving.abort()
  await expect(left).rejects.toThrow('aborted')
}

test('CE-25 - idempotency: a client that reconnects gets the answer to the request that its responder continued', async () => {
  const server = await openCe({ relays: true })
  const answering = Promise.withResolvers<ReplyInput>()
  const served = await serve(server, () => answering.promise)
  await leaveWhen(server, () => served.runs === 1)
  const again = server.post('send/query?channel=c', event(), keyed('k'))
  answering.resolve({ body: encodeText('done') })
  expect(await again).toMatchObject({ status: 200, data: { data: 'done' } })
  expect(served.runs).toBe(1)
})

test('CE-25 - idempotency: a request that no responder received ends with its client, and a repeat is sent', async () => {
  const outcomes: string[] = []
  const server = await openCe({
    relays: true,
    hooks: { requestFinished: ({ outcome }) => void outcomes.push(outcome) },
  })
  await leaveWhen(server, async () => (await server.user.channels.list()).length > 0)
  await until(() => outcomes.length > 0)
  expect(outcomes).toEqual(['disconnected'])
  const again = server.post('send/query?channel=c', event(), keyed('k'))
  const served = await serve(server)
  const answer = await again
  expect(answer).toMatchObject({ status: 200, data: { data: 'run 1' } })
  expect(isReplay(answer)).toBe(false)
  expect(served.runs).toBe(1)
})

test('CE-25 - idempotency: an invalid key is 400 and nothing is sent', async () => {
  const server = await openCe({ relays: true })
  const served = await serve(server)
  for (const key of ['', 'a b', 'a, b', 'é', 'x'.repeat(256)]) {
    expect(await server.post('send/command?channel=c', event(), keyed(key))).toMatchObject({
      status: 400,
      is_error: true,
      message: expect.stringContaining('1 to 255 visible ASCII characters'),
      data: { code: 'IDEMPOTENCY_KEY_INVALID', allowed: '1 to 255 visible ASCII characters' },
    })
  }
  expect(served.runs).toBe(0)
  for (const key of ['!', '~'.repeat(255), '"8e03978e-40d5-43dd-bc93-6894a57f9324"']) {
    expect(await server.post('send/command?channel=c', event(), keyed(key))).toMatchObject({ status: 202 })
  }
})

test('CE-25 - idempotency: a server without the handle for its own channels refuses keys instead of ignoring them', async () => {
  const server = await openCe()
  const served = await serve(server)
  expect(await server.post('send/command?channel=c', event(), keyed('k'))).toMatchObject({
    status: 400,
    message: expect.stringContaining('keeps no idempotency keys'),
    data: { code: 'IDEMPOTENCY_KEY_INVALID' },
  })
  expect(served.runs).toBe(0)
  expect(await server.post('send/command?channel=c', event())).toMatchObject({ status: 202 })
})

test('CE-25 - idempotency: a store that is not available is 503, and nothing is sent', async () => {
  const broken = await openEmbeddedEngine({ path: testFolder() })
  const { system } = createBroker(broken)
  await broken.close()
  const server = await openCe({ system })
  const served = await serve(server)
  expect(await server.post('send/command?channel=c', event(), keyed('k'))).toMatchObject({
    status: 503,
    data: { code: 'ENGINE_UNAVAILABLE' },
  })
  expect(served.runs).toBe(0)
})

test('CE-25 - idempotency: an answer survives a restart', async () => {
  const folder = testFolder()
  const before = await openCe({ relays: true, folder })
  await serve(before)
  const first = await before.post('send/query?channel=c', event(), keyed('k'))
  await before.close()
  const after = await openCe({ relays: true, folder })
  const again = await after.post('send/query?channel=c', event(), keyed('k'))
  expect([again.status, again.text, isReplay(again)]).toEqual([200, first.text, true])
  expect(await after.post('send/query?channel=c', event({ data: 1 }), keyed('k'))).toMatchObject({ status: 422 })
})

test('CE-25 - idempotency: an answer above 256 KiB is not kept, and its request is not sent again', async () => {
  const server = await openCe({ relays: true })
  const served = await serve(server, () => ({ body: encodeText('x'.repeat(262_145)) }))
  expect(await server.post('send/query?channel=c', event(), keyed('k'))).toMatchObject({ status: 200 })
  expect(await server.post('send/query?channel=c', event(), keyed('k'))).toMatchObject({
    ...UNKNOWN,
    message: expect.stringContaining('262145 bytes'),
  })
  expect(served.runs).toBe(1)
})

test('CE-25 - idempotency: a key may be used again after its time', async () => {
  const server = await openCe({ relays: true, idempotencySeconds: 1 })
  const served = await serve(server)
  await server.post('send/command?channel=c&timeout=1', event(), keyed('k'))
  await until(async () => !isReplay(await server.post('send/command?channel=c&timeout=1', event(), keyed('k'))))
  expect(served.runs).toBe(2)
})

test('CE-25 - idempotency: a responder at /ce gets a request once', async () => {
  const server = await openCe({ relays: true })
  const responder = await server.subscribe('commands?channel=c')
  const first = server.post('send/command?channel=c', event(), keyed('k'))
  const { brokerrequestid } = await responder.nextJson()
  await server.post(`send/response?request_id=${brokerrequestid}&is_error=true`, event({ data: 'no' }))
  const again = await server.post('send/command?channel=c', event(), keyed('k'))
  expect(again).toMatchObject({ status: 202, is_error: true, data: { channel: 'c', executed: false, error: 'no' } })
  expect([again.text, isReplay(again)]).toEqual([(await first).text, true])
  expect(responder.waiting).toEqual([])
})
