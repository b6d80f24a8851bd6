import type { BrokerHandle, RequestMessage } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import * as fc from 'fast-check'
import { testFolder } from '@signalbox/testkit/test-folder'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, onTestFinished, test } from 'vitest'

import type { AgentQuery } from '../src/requests/agent-query.ts'
import { agentChannel, decodeAgentQuery, encodeAgentQuery } from '../src/requests/agent-query.ts'
import type { AgentFailure, AgentReply } from '../src/requests/agent-reply.ts'
import { decodeAgentReply, encodeAgentReply } from '../src/requests/agent-reply.ts'
import { AgentRequests, GATEWAY_TIMEOUT_BUFFER_MS } from '../src/requests/agent-requests.ts'

const ALICE = { clientId: 'alice' }
const BODY = encodeText('{"jsonrpc":"2.0"}')
const bytes = fc.uint8Array({ maxLength: 50 })
const headers = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string(), { noNullPrototype: true })

async function openSystem(): Promise<BrokerHandle> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  return createBroker(engine).system
}

test('requests - a request is the same when it arrives', () => {
  const queries: fc.Arbitrary<AgentQuery> = fc.record(
    {
      mode: fc.constantFrom('call' as const, 'accept' as const, 'stream' as const),
      body: bytes,
      callerId: fc.string(),
      admin: fc.boolean(),
      traced: fc.constant(true),
      account: fc.string(),
      timeoutMs: fc.oneof(fc.integer({ min: 1 }), fc.double({ min: 1e-9, max: 1e12, noNaN: true })),
      requestId: fc.string(),
      streamId: fc.string(),
      hops: fc.integer({ min: 1 }),
      headers,
      wire: fc.record({
        agentId: fc.string(),
        version: fc.constantFrom('1.0' as const, '0.3' as const),
        answer: fc.constantFrom('native' as const, 'rest' as const, 'events' as const, 'agent' as const),
      }),
    },
    { requiredKeys: ['mode', 'body', 'callerId', 'admin', 'account', 'timeoutMs', 'hops', 'headers'] },
  )
  fc.assert(
    fc.property(queries, (query) => {
      const { body, tags = {} } = encodeAgentQuery(query)
      expect(decodeAgentQuery({ body, tags })).toEqual(query)
    }),
    { seed: 1, numRuns: cases(500) },
  )
})

test('requests - a reply is the same when it arrives', () => {
  const failures: readonly AgentFailure[] = [
    'timeout',
    'unreachable',
    'unavailable',
    'too_large',
    'busy',
    'not_found',
    'invalid_response',
  ]
  const replies: fc.Arbitrary<AgentReply> = fc
    .record(
      {
        error: fc.string(),
        failure: fc.constantFrom(...failures),
        status: fc.integer({ min: 0, max: 599 }),
        body: bytes,
        whole: fc.boolean(),
        unsent: fc.boolean(),
        follow: fc.string(),
        parked: fc.constantFrom('wait' as const, 'at_once' as const, 'snapshot' as const),
        repeated: fc.constant(true),
        headers: headers.filter((names) => Object.keys(names).length > 0),
      },
      { requiredKeys: ['error', 'status', 'body', 'whole', 'unsent'] },
    )
    .map((reply) => Object.assign(reply, { executed: reply.error === '' }))
  fc.assert(
    fc.property(replies, (reply) => {
      const { error = '', body = new Uint8Array(), tags = {} } = encodeAgentReply(reply)
      expect(decodeAgentReply({ executed: error === '', error, body, metadata: '', tags })).toEqual(reply)
    }),
    { seed: 2, numRuns: cases(500) },
  )
})

test('requests - a reply without tags has no status, and an unknown failure is ignored', () => {
  const tags = { a2a_failure: 'unheard of' }
  const reply = decodeAgentReply({ executed: true, error: '', body: BODY, metadata: '', tags })
  expect(reply).toEqual({ executed: true, error: '', status: 0, body: BODY, whole: false, unsent: false })
})

test('requests - a request of an older node counts as one hop', () => {
  const tags = { a2a_mode: 'call', a2a_caller: 'alice', a2a_timeout_ms: '1' }
  expect(decodeAgentQuery({ body: BODY, tags })).toMatchObject({ mode: 'call', hops: 1, account: 'client:alice' })
})

test.each<[tag: string, value: string | undefined]>([
  ['a2a_mode', 'shout'],
  ['a2a_mode', undefined],
  ['a2a_caller', undefined],
  ['a2a_timeout_ms', '0'],
  ['a2a_timeout_ms', 'x'],
  ['a2a_timeout_ms', ''],
  ['a2a_timeout_ms', undefined],
  ['a2a_hops', '0'],
  ['a2a_hops', '1.5'],
  ['a2a_wire', '9.0'],
  ['a2a_answer', 'song'],
  ['a2a_answer', undefined],
])('requests - a message that no gateway sent is refused: %s %s', (tag, value) => {
  const { body, tags: sent } = encodeAgentQuery({
    mode: 'call',
    body: BODY,
    callerId: 'alice',
    account: 'client:alice',
    timeoutMs: 1500,
    hops: 2,
    headers: {},
    wire: { agentId: 'echo', version: '1.0', answer: 'agent' },
  })
  const { [tag]: _, ...others } = sent ?? {}
  const tags = value === undefined ? others : { ...others, [tag]: value }
  expect(() => decodeAgentQuery({ body, tags })).toThrow(TypeError)
})

test('requests - a request reaches the agent’s node, and its answer comes back', async () => {
  const system = await openSystem()
  const seen: AgentQuery[] = []
  await system.queries.subscribe(agentChannel('a1'), {}, (request) => {
    seen.push(decodeAgentQuery(request))
    return encodeAgentReply({ executed: true, error: '', status: 201, body: encodeText('{"result":1}') })
  })
  await system.queries.subscribe(agentChannel('a2'), {}, () =>
    encodeAgentReply({
      executed: false,
      error: 'agent timeout',
      failure: 'timeout',
      status: 0,
      body: new Uint8Array(),
    }),
  )
  const requests = new AgentRequests(system, { defaultTimeoutMs: 300_000, maxTimeoutMs: 3_600_000 })
  const body = encodeText('{"jsonrpc":"2.0"}')
  expect(await requests.request('a1', body, { caller: ALICE, headers: { 'x-a': 'b' } })).toEqual({
    executed: true,
    error: '',
    status: 201,
    body: encodeText('{"result":1}'),
    whole: false,
    unsent: false,
  })
  await requests.request('a1', body, { caller: ALICE, acceptOnly: true })
  await requests.request('a1', body, { caller: ALICE, streamId: 's1', acceptOnly: true })
  const from = { body, callerId: 'alice', account: 'client:alice', admin: false, requestId: expect.any(String) }
  expect(seen).toEqual([
    { ...from, mode: 'call', timeoutMs: 300_000, hops: 1, headers: { 'x-a': 'b' } },
    { ...from, mode: 'accept', timeoutMs: 300_000, hops: 1, headers: {} },
    { ...from, mode: 'stream', timeoutMs: 300_000, hops: 1, headers: {}, streamId: 's1' },
  ])
  expect(await requests.request('a2', body, { caller: ALICE })).toEqual({
    executed: false,
    error: 'agent timeout',
    failure: 'timeout',
    status: 0,
    body: new Uint8Array(),
    whole: false,
    unsent: false,
  })
})

test('requests - timeouts are capped, and the broker waits 10 s longer than the agent may take', async () => {
  const system = await openSystem()
  const requests = new AgentRequests(system, { defaultTimeoutMs: 20_000, maxTimeoutMs: 30_000 })
  const seen: { timeoutMs: number; waitMs: number }[] = []
  await system.queries.subscribe(agentChannel('a1'), {}, (request: RequestMessage) => {
    seen.push({ timeoutMs: decodeAgentQuery(request).timeoutMs, waitMs: request.deadline - request.timestamp })
    return {}
  })
  const cases: readonly [given: number | undefined, agent: number][] = [
    [undefined, 20_000],
    [1, 1],
    [0.5, 0.5],
    [30_000, 30_000],
    [30_001, 30_000],
    [Number.MAX_SAFE_INTEGER, 30_000],
  ]
  expect(GATEWAY_TIMEOUT_BUFFER_MS).toBe(10_000)
  for (const [given, agent] of cases) {
    await requests.request('a1', new Uint8Array(), {
      caller: ALICE,
      timeoutMs: given,
    })
    const last = seen.at(-1)
    expect(last?.timeoutMs).toBe(agent)
    expect(Math.abs((last?.waitMs ?? 0) - Math.ceil(agent) - 10_000)).toBeLessThan(1_000)
  }
})

test('requests - aborting ends the wait for an agent that no node serves', async () => {
  const system = await openSystem()
  const requests = new AgentRequests(system, { defaultTimeoutMs: 20_000, maxTimeoutMs: 30_000 })
  const controller = new AbortController()
  const waiting = requests.request('nobody', new Uint8Array(), { caller: ALICE, signal: controller.signal })
  controller.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
})

test('requests - when its caller disconnects, a request that no node has accepted is dropped; an accepted one continues', async () => {
  const system = await openSystem()
  const requests = new AgentRequests(system, { defaultTimeoutMs: 20_000, maxTimeoutMs: 30_000 })
  const gone = new AbortController()
  const options = { caller: ALICE, callerGone: gone.signal }
  const taken = Promise.withResolvers<AbortSignal>()
  const answer = Promise.withResolvers<void>()
  await system.queries.subscribe(agentChannel('slow'), {}, async ({ signal }) => {
    taken.resolve(signal)
    await answer.promise
    return encodeAgentReply({ executed: true, error: '', status: 200, body: new Uint8Array() })
  })
  const waiting = requests.request('nobody', new Uint8Array(), options)
  const running = requests.request('slow', new Uint8Array(), options)
  const signal = await taken.promise
  gone.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  expect(signal.aborted).toBe(false)
  answer.resolve()
  expect(await running).toMatchObject({ executed: true, status: 200 })
})
