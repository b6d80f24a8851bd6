import type { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'

import { encodeText } from '@signalbox/broker-core'
import { JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject, readRequestId } from '@signalbox/http-kit/internal'

import { isSuccess } from '../../gateway/call-protocol.ts'
import { A2A_CODES } from '../../native/errors.ts'
import type { AgentQuery, WireRequest } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { AgentBody } from '../../stream/agent-stream.ts'
import { EventReader } from '../../stream/event-reader.ts'
import { fromBytes, NativeEvents, REST_EVENTS, rpcEvents } from '../../stream/native-events.ts'
import { OwnEvents, parseData } from '../../stream/own-events.ts'
import type { A2aMethod, WireVersion } from '../../wire/index.ts'
import { TERMINAL_03 } from '../../wire/index.ts'
import type { CallResult } from '../agent-call.ts'
import type { AgentWire } from './agent-wire.ts'
import { otherVersion, refusesVersion } from './agent-wire.ts'
import { fromRest, RestAgentEvents, toRest } from './rest-agent.ts'
import { inOwnVersion, refusedTranslation, relayedHeaders, translateQuery, translateReply } from './translate.ts'

/**
 * Sends a request to the agent once.
 * @param tap Called with each chunk of a response that is a stream
 */
type SendOnce = (query: AgentQuery, tap?: (chunk: Buffer) => void) => Promise<CallResult>

/** A result, and the version of A2A that it is in. */
interface Answer {
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
export async function askAgent(
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
 * Asks in the version that the agent is known to askAgent. If that is not certain and the agent refuses the version, asks
 * once more in the other. A refusal means that the agent has done nothing.
 */
async function converse(query: AgentQuery, wire: WireRequest, agent: AgentWire, send: SendOnce): Promise<Answer> {
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

function refused(error: JsonRpcError, { version }: WireRequest): Answer {
  return { result: { reply: refusedTranslation(error) }, version }
}

/** Sends a JSON-RPC request of A2A 1.0 over the HTTP+JSON binding; resolves with the JSON-RPC answer that it means. */
async function sendOverRest(query: AgentQuery, send: SendOnce): Promise<CallResult> {
  const asked = toRest(query)
  if (asked instanceof JsonRpcError) return { reply: refusedTranslation(asked) }
  const result = await send(asked)
  return result.events === undefined ? { reply: fromRest(result.reply) } : result
}

function isRefused({ result: { reply, events } }: Answer): boolean {
  return events === undefined && refusesVersion(reply)
}

/** Returns the error if the request has no translation; the agent was not asked then. */
async function askIn(
  version: WireVersion,
  query: AgentQuery,
  wire: WireRequest,
  { tenant }: AgentWire,
  send: SendOnce,
): Promise<Answer | JsonRpcError> {
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
function presented(query: AgentQuery, { version: to, answer }: WireRequest, given: Answer): CallResult {
  const { result, version: from, method } = given
  const { reply, events } = result
  if (answer === 'agent') return result
  const { log } = query
  if (answer === 'events') {
    const stream = events === undefined && isPlainSuccess(reply) ? asStream(reply) : result
    return log?.events === undefined || stream.events === undefined
      ? stream
      : { ...stream, converter: log.events(from) }
  }
  if (events !== undefined) {
    const encoder = answer === 'rest' ? REST_EVENTS : rpcEvents(readRequestId(query.body) ?? 'null')
    const converter = log?.events?.(from) ?? new NativeEvents(encoder, { from, to })
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

/** The time for which the first event of a stream is awaited, in ms. Agents refuse a request at once. */
const WAIT_MS = 500

/** A refusal has a short text, and so has a task that has ended long ago. Longer first events are not read. */
const MAX_BYTES = 65_536

/** Subscribing to a task that has ended is an error in A2A 1.0 (section 3.1.6). */
const ENDED = JSON.stringify({
  jsonrpc: '2.0',
  id: null,
  error: {
    code: A2A_CODES.UNSUPPORTED_OPERATION,
    message: 'unsupported operation: the task has ended, so that it has no further events; read it with GetTask',
  },
})

/** Reads the first event of an agent of A2A 0.3, without taking it from the stream. */
class FirstEvent {
  readonly #reader: EventReader
  readonly #found = Promise.withResolvers<string | undefined>()
  #bytes = 0
  #done = false

  constructor() {
    this.#reader = new EventReader(MAX_BYTES, ({ data }) => this.#end(data))
  }

  /** Reads a chunk of the stream. Does nothing after the first event. */
  readonly read = (chunk: Buffer): void => {
    if (this.#done) return
    this.#bytes += chunk.byteLength
    if (this.#bytes > MAX_BYTES || !this.#reader.feed(chunk)) this.#end(undefined)
  }

  /**
   * Returns the JSON-RPC response, in 0.3, that a caller of A2A 1.0 gets in place of the stream: agents of 1.0 refuse a
   * request for a stream with JSON. Undefined for any other stream, and for one whose first event takes long.
   */
  async refusal(method: A2aMethod | undefined): Promise<string | undefined> {
    const timer = setTimeout(() => this.#end(undefined), WAIT_MS)
    const data = await this.#found.promise
    clearTimeout(timer)
    const source = data === undefined ? undefined : parseData(data)
    if (typeof source !== 'object' || !isJsonObject(source.value)) return undefined
    const { error, result } = source.value
    if (isJsonObject(error)) return fromBytes(source.text)
    return method?.operation === 'resubscribe' && isEnded(result) ? ENDED : undefined
  }

  #end(data: string | undefined): void {
    this.#done = true
    this.#found.resolve(data)
  }
}

function isEnded(result: unknown): boolean {
  if (!isJsonObject(result) || result['kind'] !== 'task') return false
  const status: unknown = result['status']
  return isJsonObject(status) && TERMINAL_03.has(status['state'])
}

/** A plain response that was read completely, for a stream whose one event it is. */
class WholeResponse extends Readable implements AgentBody {
  readonly headers: AgentBody['headers'] = { 'content-type': 'application/json' }
  readonly #body: Uint8Array

  constructor(body: Uint8Array) {
    super()
    this.#body = body
  }

  /** @inheritdoc */
  override _read(): void {
    if (this.#body.byteLength > 0) this.push(this.#body)
    this.push(null)
  }
}
