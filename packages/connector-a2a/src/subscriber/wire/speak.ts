import type { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { JsonRpcError, readRequestId } from '@signalbox/http-kit'
import type { AgentQuery, WireRequest } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { WireVersion } from '../../wire/index.ts'

import { isSuccess } from '../../gateway/rpc-response.ts'
import { A2A_CODES } from '../../native/error-info.ts'
import { OwnEvents } from '../../stream/own-events.ts'
import { NativeEvents, REST_EVENTS, rpcEvents } from '../../stream/native-events.ts'
import type { A2aMethod } from '../../wire/index.ts'
import type { CallResult } from '../agent-call.ts'
import type { AgentWire } from './agent-wire.ts'
import { otherVersion } from './agent-wire.ts'
import { FirstEvent } from './first-event.ts'
import { inOwnVersion, translateQuery } from './translate-query.ts'
import { refusedTranslation, relayedHeaders, translateReply } from './translate-reply.ts'
import { fromRest, RestAgentEvents, toRest } from './rest-agent.ts'
import { refusesVersion } from './version-refusal.ts'
import { WholeResponse } from './whole-response.ts'

/**
 * Sends a request to the agent once.
 * @param tap Called with each chunk of a response that is a stream
 */
export type SendOnce = (query: AgentQuery, tap?: (chunk: Buffer) => void) => Promise<CallResult>

/** A result, and the version of A2A that it is in. */
interface Spoken {
  readonly result: CallResult
  readonly version: WireVersion
  /** The method, if the request was translated. */
  readonly method?: A2aMethod | undefined
}

const NO_BODY = new Uint8Array(0)

/**
 * Sends a request to an agent in the version of A2A that the agent speaks, and returns its answer in the form that the
 * caller gets.
 */
export async function speak(
  query: AgentQuery,
  wire: WireRequest,
  agent: AgentWire,
  send: SendOnce,
): Promise<CallResult> {
  if (!agent.rest) return presented(query, wire, await converse(query, wire, agent, send))
  const { events, converter, ...result } = presented(
    query,
    wire,
    await converse(query, wire, agent, (asked) => sendOverRest(asked, send)),
  )
  if (events === undefined) return result
  return { ...result, events, converter: new RestAgentEvents(converter ?? new OwnEvents(query.streamId ?? '')) }
}

/**
 * Asks in the version that the agent is known to speak. If that is not certain and the agent refuses the version, asks
 * once more in the other. A refusal means that the agent has done nothing.
 */
async function converse(query: AgentQuery, wire: WireRequest, agent: AgentWire, send: SendOnce): Promise<Spoken> {
  const begin = performance.now()
  const version = agent.versionFor(wire.version)
  const first = await askIn(version, query, wire, agent, send)
  if (first instanceof JsonRpcError) return refused(first, wire)
  if (!agent.isOpen || !isRefused(first)) return first
  const timeoutMs = Math.max(1, query.timeoutMs - Math.ceil(performance.now() - begin))
  const second = await askIn(otherVersion(version), { ...query, timeoutMs }, wire, agent, send)
  // The caller can do without push notifications: it must learn that they are the reason.
  if (second instanceof JsonRpcError && second.code === A2A_CODES.PUSH_NOTIFICATION_NOT_SUPPORTED) {
    return refused(second, wire)
  }
  if (second instanceof JsonRpcError || isRefused(second)) return first
  agent.remember(version)
  return second
}

function refused(error: JsonRpcError, { version }: WireRequest): Spoken {
  return { result: { reply: refusedTranslation(error) }, version }
}

/** Sends a JSON-RPC request of A2A 1.0 over the HTTP+JSON binding; resolves with the JSON-RPC answer that it means. */
async function sendOverRest(query: AgentQuery, send: SendOnce): Promise<CallResult> {
  const asked = toRest(query)
  if (asked instanceof JsonRpcError) return { reply: refusedTranslation(asked) }
  const result = await send(asked)
  return result.events === undefined ? { reply: fromRest(result.reply) } : result
}

function isRefused({ result: { reply, events } }: Spoken): boolean {
  return events === undefined && refusesVersion(reply)
}

/** Returns the error if the request has no translation; the agent was not asked then. */
async function askIn(
  version: WireVersion,
  query: AgentQuery,
  wire: WireRequest,
  { tenant }: AgentWire,
  send: SendOnce,
): Promise<Spoken | JsonRpcError> {
  if (version === wire.version) return { result: await send(inOwnVersion(query, version)), version }
  let translated: ReturnType<typeof translateQuery>
  try {
    translated = translateQuery(query, wire, version, tenant)
  } catch (error) {
    if (error instanceof JsonRpcError) return error
    throw error
  }
  const { method } = translated
  if (version === '1.0' || query.mode !== 'stream' || wire.answer === 'events') {
    return { result: await send(translated.query), version, method }
  }
  const first = new FirstEvent()
  const result = await send(translated.query, first.read)
  const refusal = result.events === undefined ? undefined : await first.refusal(method)
  if (refusal === undefined) return { result, version, method }
  result.events?.destroy()
  return { result: { reply: { ...result.reply, body: encodeText(refusal), whole: true } }, version, method }
}

/** Returns a result in the form that the caller gets. */
function presented(query: AgentQuery, { version: to, answer }: WireRequest, spoken: Spoken): CallResult {
  const { result, version: from, method } = spoken
  const { reply, events } = result
  if (answer === 'agent') return result
  if (answer === 'events') return events === undefined && isPlainSuccess(reply) ? asStream(reply) : result
  if (events !== undefined) {
    const encoder = answer === 'rest' ? REST_EVENTS : rpcEvents(readRequestId(query.body) ?? 'null')
    const converter = new NativeEvents(encoder, { from, to })
    return { reply: from === to ? reply : { ...reply, headers: relayedHeaders(reply, from, to) }, events, converter }
  }
  return from === to || method === undefined ? result : { reply: translateReply(reply, method, from, to) }
}

function isPlainSuccess(reply: AgentReply): boolean {
  return reply.whole === true && reply.failure === undefined && isSuccess(reply)
}

/** Returns a plain response as a stream with one event. */
function asStream(reply: AgentReply): CallResult {
  return { reply: { ...reply, body: NO_BODY, whole: false }, events: new WholeResponse(reply.body) }
}
