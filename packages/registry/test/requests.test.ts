import type { RequestMessage } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AgentFailure, AgentQuery, AgentReply } from '../src/index.ts'
import {
  agentChannel,
  AgentRequests,
  decodeAgentQuery,
  encodeAgentReply,
  GATEWAY_TIMEOUT_BUFFER_MS,
} from '../src/index.ts'
import { decodeAgentReply } from '../src/requests/agent-reply.ts'
import { encodeAgentQuery } from '../src/requests/agent-query.ts'
import { ALICE, openBench } from './registry-bench.ts'

const bytes = fc.uint8Array({ maxLength: 50 })

test('requests - a request is the same when it arrives', () => {
  const queries: fc.Arbitrary<AgentQuery> = fc.record(
    {
      mode: fc.constantFrom('call' as const, 'accept' as const, 'stream' as const),
      body: bytes,
      callerId: fc.string(),
      account: fc.string(),
      timeoutMs: fc.oneof(fc.integer({ min: 1 }), fc.double({ min: 1e-9, max: 1e12, noNaN: true })),
      requestId: fc.string(),
      streamId: fc.string(),
      hops: fc.integer({ min: 1 }),
      headers: fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string(), { noNullPrototype: true }),
    },
    { requiredKeys: ['mode', 'body', 'callerId', 'account', 'timeoutMs', 'hops', 'headers'] },
  )
  fc.assert(
    fc.property(queries, (query) => {
      const { body, tags = {} } = encodeAgentQuery(query)
      expect(decodeAgentQuery({ body, tags })).toEqual(query)
    }),
    { seed: 1, numRuns: 500 },
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
      },
      { requiredKeys: ['error', 'status', 'body'] },
    )
    .map((reply) => Object.assign(reply, { executed: reply.error === '' }))
  fc.assert(
    fc.property(replies, (reply) => {
      const { error = '', body = new Uint8Array(), tags = {} } = encodeAgentReply(reply)
      expect(decodeAgentReply({ executed: error === '', error, body, metadata: '', tags })).toEqual(reply)
    }),
    { seed: 2, numRuns: 500 },
  )
})

test('requests - a request that is not addressed to an agent is refused', () => {
  const body = new Uint8Array()
  const good = { a2a_mode: 'call', a2a_caller: 'alice', a2a_timeout_ms: '1' }
  expect(decodeAgentQuery({ body, tags: good }).mode).toBe('call')
  for (const more of [
    { a2a_mode: 'other' },
    { a2a_timeout_ms: '0' },
    { a2a_timeout_ms: 'x' },
    { a2a_timeout_ms: '' },
  ]) {
    expect(() => decodeAgentQuery({ body, tags: { ...good, ...more } }), JSON.stringify(more)).toThrow(TypeError)
  }
  expect(() => decodeAgentQuery({ body, tags: {} })).toThrow(TypeError)
  const reply = { executed: true, error: '', body, metadata: '', tags: { a2a_failure: 'other' } }
  expect(decodeAgentReply(reply)).toEqual({ executed: true, error: '', status: 0, body })
})

test('requests - a request reaches the agent’s node, and its answer comes back', async () => {
  const { system } = await openBench()
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
  })
  await requests.request('a1', body, { caller: ALICE, acceptOnly: true })
  await requests.request('a1', body, { caller: ALICE, streamId: 's1', acceptOnly: true })
  const from = { body, callerId: 'alice', account: 'client:alice', requestId: expect.any(String) }
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
  })
})

test('requests - timeouts are capped, and the broker waits 10 s longer than the agent may take', async () => {
  const { system } = await openBench()
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
      ...(given === undefined ? {} : { timeoutMs: given }),
    })
    const last = seen.at(-1)
    expect(last?.timeoutMs).toBe(agent)
    expect(Math.abs((last?.waitMs ?? 0) - Math.ceil(agent) - 10_000)).toBeLessThan(1_000)
  }
})

test('requests - aborting ends the wait for an agent that no node serves', async () => {
  const { system } = await openBench()
  const requests = new AgentRequests(system, { defaultTimeoutMs: 20_000, maxTimeoutMs: 30_000 })
  const controller = new AbortController()
  const waiting = requests.request('nobody', new Uint8Array(), { caller: ALICE, signal: controller.signal })
  controller.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
})

test('requests - when its caller disconnects, a request that no node has accepted is dropped; an accepted one continues', async () => {
  const { system } = await openBench()
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
