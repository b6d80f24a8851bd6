import { Buffer } from 'node:buffer'

import { JsonRpcError } from '@signalbox/http-kit'
import { allSteps, isJsonObject, readJson } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'

import { agentAnswer } from '../../../../packages/connector-a2a/src/gateway/call-protocol.ts'
import { readTimeoutMs, streamRequest } from '../../../../packages/connector-a2a/src/gateway/call.ts'
import { callerHeaders } from '../../../../packages/connector-a2a/src/gateway/caller-headers.ts'
import { decodeAgentQuery } from '../../../../packages/connector-a2a/src/requests/agent-query.ts'
import type { ServerSentEvent } from '../../../../packages/connector-a2a/src/stream/event-reader.ts'
import { EventReader } from '../../../../packages/connector-a2a/src/stream/event-reader.ts'
import { decodeControl, decodeFrame } from '../../../../packages/connector-a2a/src/stream/link/messages.ts'
import { OwnEvents } from '../../../../packages/connector-a2a/src/stream/own-events.ts'
import { agentOutcome } from '../../../../packages/connector-mcp/src/tools/agent-call.ts'
import { resultMembers } from '../../../../packages/connector-mcp/src/tools/tool.ts'
import { agentReplyText, eventStreamText } from '../grammar/agents.ts'
import { JSON_UNITS, jsonText } from '../grammar/json.ts'
import { almost, MAX_HEAD, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, assertSame, parserTarget, resultOf } from '../target.ts'

/** The size of one read from a socket, in bytes: a longer stream is read in several ticks of the loop. */
const MAX_CHUNK = 65_536

const STREAM_ID = '00000000-0000-4000-8000-000000000000'

function events(chunks: readonly Buffer[], limit: number): readonly ServerSentEvent[] {
  const found: ServerSentEvent[] = []
  const reader = new EventReader(limit, (event) => found.push(event))
  for (const chunk of chunks) if (!reader.feed(chunk)) break
  reader.end()
  return found
}

function checkStream(text: string, cuts: readonly number[], limit: number): void {
  const bytes = Buffer.from(text)
  const chunks: Buffer[] = []
  let from = 0
  for (const cut of cuts.map((part) => Math.floor(part * bytes.length)).toSorted((a, b) => a - b)) {
    chunks.push(bytes.subarray(from, cut))
    from = cut
  }
  chunks.push(bytes.subarray(from))
  const whole = events([bytes], limit)
  // Past the limit, the position of the reader depends on the chunks.
  if (bytes.length < limit) assertSame('events of the same bytes in other chunks', events(chunks, limit), whole)
  const agentEvents = new OwnEvents(STREAM_ID)
  for (const event of whole) {
    const { text: client, end } = agentEvents.next(event)
    assertHolds('an event for the client is not one event', /^event: [^\n\r]+\ndata: [^\n\r]*\n\n$/.test(client))
    const data: unknown = JSON.parse(Buffer.from(client.slice(client.indexOf('data: ') + 6), 'latin1').toString('utf8'))
    assertHolds('the data of an event for the client is not an object', isJsonObject(data))
    if (end !== undefined) return
  }
  assertHolds('a stream that ended has no terminal event', agentEvents.ended().end !== undefined)
}

const status = fc.oneof(fc.constantFrom(200, 201, 204, 400, 500, 302, 404, 418, 0), fc.nat(999))

export const agentTargets = [
  parserTarget({
    name: 'agent-reply',
    about: 'replies of agents to /a2a and to the agent tools',
    input: fc.record({
      status,
      pieces: almost(agentReplyText, ...JSON_UNITS),
      encoding: fc.constantFrom('utf8' as const, 'utf8' as const, 'latin1' as const),
    }),
    check({ status, pieces, encoding }) {
      const reply = { executed: true, error: '', status, body: Buffer.from(textOf(pieces), encoding) }
      const answer = resultOf(() => allSteps(agentAnswer('a', reply)), JsonRpcError)
      // Every forwarded text becomes part of a Signalbox answer, which must stay JSON.
      if (answer !== undefined) JSON.parse('result' in answer ? Buffer.from(answer.result).toString() : answer.error)
      JSON.parse(`{${String(resultMembers(allSteps(agentOutcome('a', reply))))}}`)
    },
  }),
  parserTarget({
    name: 'sse',
    about: "agents' event streams: the same events for any chunks, one terminal event",
    input: fc.record({
      pieces: almost(eventStreamText, 'data: a\n', '\n', 'event: task.done\n', ':', 'data:', '\r', 'id: 1\n'),
      cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
      limit: fc.constantFrom(64, 4_096, 1_048_576),
    }),
    check: ({ pieces, cuts, limit }) => checkStream(textOf(pieces, MAX_CHUNK), cuts, limit),
  }),
  parserTarget({
    name: 'agent-plain-answer',
    about: 'agents that answer message/stream with plain JSON',
    input: almost(agentReplyText, ...JSON_UNITS),
    check(pieces) {
      const answer = allSteps(new OwnEvents(STREAM_ID).plainAnswer(Buffer.from(textOf(pieces))))
      const text = 'parts' in answer ? Buffer.concat(answer.parts).toString('latin1') : answer.text
      assertHolds('an answer is not one event', /^event: [^\n\r]+\ndata: [^\n\r]*\n\n$/.test(text))
    },
  }),
  parserTarget({
    name: 'agent-frames',
    about: 'frames and credit of streams, and requests to agents, from another version',
    input: fc.record({
      tags: fc.dictionary(
        fc.constantFrom('n', 'beat', 'more', 'end', 'a2a_mode', 'a2a_caller', 'a2a_timeout_ms', 'a2a_hdr___proto__'),
        fc.oneof(word, fc.constantFrom('call', 'stream', '1')),
      ),
      body: almost(jsonText, ...JSON_UNITS),
    }),
    check({ tags, body }) {
      const message = { tags, body: Buffer.from(textOf(body)) }
      decodeFrame(message)
      decodeControl(message)
      resultOf(() => decodeAgentQuery(message), TypeError)
    },
  }),
  parserTarget({
    name: 'agent-request',
    about: 'options of a request to an agent: query, timeout, headers',
    input: fc.record({
      query: almost(
        fc.tuple(phrase, word).map(([message, timeout]) => `message=${message}&timeout=${timeout}`),
        '&',
        '%',
        '+',
        'a=',
      ),
      params: jsonText,
      headers: fc.dictionary(
        fc.oneof(word, fc.constantFrom('connection', 'x-broker-id', 'a_b')),
        fc.oneof(
          word,
          almost(word, ', a', ',').map((pieces) => textOf(pieces, MAX_HEAD)),
        ),
      ),
    }),
    check({ query, params, headers }) {
      resultOf(() => streamRequest(textOf(query, MAX_HEAD)), JsonRpcError)
      const value = readJson(textOf([params]))?.value
      if (isJsonObject(value)) resultOf(() => readTimeoutMs(value), JsonRpcError)
      callerHeaders(headers)
    },
  }),
]
