import { Buffer } from 'node:buffer'

import { expect, test } from 'vitest'

import type { AgentQuery, AgentReply } from '../src/index.ts'
import { decodeAgentQuery, encodeAgentReply } from '../src/index.ts'
import { encodeAgentQuery } from '../src/requests/agent-query.ts'
import { decodeAgentReply } from '../src/requests/agent-reply.ts'

const BODY = Buffer.from('{"jsonrpc":"2.0"}')
const QUERY: AgentQuery = {
  mode: 'call',
  body: BODY,
  callerId: 'alice',
  account: 'client:alice',
  timeoutMs: 1500,
  hops: 2,
  headers: {},
}

function sent(query: AgentQuery): { body: Uint8Array; tags: Record<string, string> } {
  const { body, tags = {} } = encodeAgentQuery(query)
  return { body: Buffer.from(body), tags: { ...tags } }
}

test.each<[what: string, query: AgentQuery]>([
  ['a call', QUERY],
  ['a notification with headers', { ...QUERY, mode: 'accept', headers: { traceparent: '00-1', 'a2a-version': '1.0' } }],
  ['a stream', { ...QUERY, mode: 'stream', streamId: 's1' }],
  ['an official call', { ...QUERY, wire: { agentId: 'echo', version: '0.3', answer: 'native' } }],
  [
    'an official stream',
    { ...QUERY, mode: 'stream', streamId: 's2', wire: { agentId: 'echo', version: '1.0', answer: 'rest' } },
  ],
])('request encoding - %s arrives as it was sent', (_what, query) => {
  expect(decodeAgentQuery(sent(query))).toEqual(query)
})

test('request encoding - a request of an older node counts as one hop', () => {
  const { body, tags } = sent(QUERY)
  delete tags['a2a_hops']
  expect(decodeAgentQuery({ body, tags })).toMatchObject({ hops: 1 })
})

test.each<[tag: string, value: string | undefined]>([
  ['a2a_mode', 'shout'],
  ['a2a_mode', undefined],
  ['a2a_caller', undefined],
  ['a2a_timeout_ms', '0'],
  ['a2a_timeout_ms', undefined],
  ['a2a_hops', '0'],
  ['a2a_hops', '1.5'],
  ['a2a_wire', '9.0'],
  ['a2a_answer', 'song'],
  ['a2a_answer', undefined],
])('request encoding - a message that no gateway sent is refused: %s %s', (tag, value) => {
  const { body, tags } = sent({ ...QUERY, wire: { agentId: 'echo', version: '1.0', answer: 'agent' } })
  if (value === undefined) delete tags[tag]
  else tags[tag] = value
  expect(() => decodeAgentQuery({ body, tags })).toThrow(TypeError)
})

test.each<[what: string, reply: AgentReply]>([
  ['a response', { executed: true, error: '', status: 200, body: BODY }],
  ['a failure', { executed: false, error: 'agent timeout', failure: 'timeout', status: 0, body: Buffer.alloc(0) }],
  [
    'a whole response with headers',
    { executed: true, error: '', status: 429, body: BODY, whole: true, headers: { 'retry-after': '5' } },
  ],
  [
    'a request that was not sent',
    { executed: false, error: 'gone', failure: 'unreachable', status: 0, body: BODY, unsent: true },
  ],
])('reply encoding - %s arrives as it was sent', (_what, reply) => {
  const { body = Buffer.alloc(0), error = '', tags = {} } = encodeAgentReply(reply)
  const arrived = { executed: reply.executed, error, body: Buffer.from(body), tags, metadata: '' }
  expect(decodeAgentReply(arrived)).toEqual(reply)
})

test('reply encoding - a reply without tags has no status and no failure', () => {
  const arrived = { executed: true, error: '', body: BODY, tags: { a2a_failure: 'unheard of' }, metadata: '' }
  expect(decodeAgentReply(arrived)).toEqual({ executed: true, error: '', status: 0, body: BODY })
})
