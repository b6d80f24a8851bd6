import { Buffer, isUtf8 } from 'node:buffer'

import type { JsonObject, Steps } from '@signalbox/http-kit'
import {
  allSteps,
  checkJson,
  isJsonObject,
  LARGE_BODY_BYTES,
  memberText,
  onOneLine,
  outlineOf,
  parseJson,
} from '@signalbox/http-kit/internal'

import { ANY_KEYS, memberOf } from '../wire/index.ts'
import type { ServerSentEvent } from './event-reader.ts'
import type { ClientBytes, ClientText, EventConverter } from './events.ts'
import { clientEventBytes, clientEventText, ENVELOPE_TYPES, failureText } from './events.ts'
import type { StreamFailure } from './failures.ts'
import { STREAM_FAILURES } from './failures.ts'

/** An agent's event after it was read in its dialect. Its source is a text, or the bytes of a large answer. */
interface Reading<Source> {
  /** The type of the client's envelope. The first `done` or `error` is the stream's last event. */
  readonly type: string
  /** The source of a type that only the agent defines. It may contain escapes, and `type` holds bytes. */
  readonly typeSource?: Source | undefined
  /** The payload's source, unchanged. */
  readonly payload: Source
  /**
   * The terminal event to send if the agent's response ends right after this event: the task is `done`, ended in an
   * `error`, or is still `open`. Absent on events that do not change the answer.
   */
  readonly ifEnded?: 'done' | 'error' | 'open'
}

/** A JSON object with its source. */
interface SourceObject<Source> {
  readonly source: Source
  readonly value: JsonObject
  /** Returns the source of a member. */
  readonly member: (key: string) => Source | undefined
}

/**
 * Converts the events of an agent, in any dialect, into the gateway's own, with exactly one terminal event, the last.
 * The dialects are A2A 1.0, A2A 0.3, and events that have the gateway's names.
 */
export class OwnEvents implements EventConverter {
  readonly #streamId: string
  /** The terminal event to send if the response ends now. */
  #conclusion: Reading<string> | undefined

  constructor(streamId: string) {
    this.#streamId = streamId
  }

  next(event: ServerSentEvent): ClientText {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    // Data that is not JSON is a message whose payload is the text.
    return this.#clientText(reading ?? { type: 'message', payload: JSON.stringify(event.data) })
  }

  cutOff(event: ServerSentEvent): ClientText | undefined {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    return reading === undefined ? undefined : this.#clientText(reading)
  }

  /** @inheritdoc An agent's plain JSON answer to `message/stream` is its one event. */
  *plainAnswer(body: Uint8Array): Steps<ClientText | ClientBytes> {
    const source = yield* onOneLine(body)
    const json = yield* checkJson(source, ANY_KEYS)
    if ('problem' in json) return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    const { members } = json
    const value = yield* outlineOf(members)
    const answer = readObject(undefined, { source, value, member: (key) => members.get(key) })
    const end = answer.type === 'error' || answer.ifEnded === 'error' ? 'error' : 'done'
    return { parts: clientEventBytes(this.#streamId, end, answer.payload), end }
  }

  ended(): ClientText {
    return this.#conclusion === undefined
      ? this.failure(STREAM_FAILURES.NO_TERMINAL_EVENT)
      : this.#clientText(this.#conclusion)
  }

  /** @inheritdoc Earlier events may not have been the last. */
  broken(): ClientText {
    return this.failure(STREAM_FAILURES.NO_TERMINAL_EVENT)
  }

  failure(failure: StreamFailure): ClientText {
    return { text: failureText(this.#streamId, failure), end: failure.code }
  }

  #clientText({ type, typeSource, payload, ifEnded }: Reading<string>): ClientText {
    if (ifEnded === 'open') this.#conclusion = undefined
    else if (ifEnded !== undefined) this.#conclusion = { type: ifEnded, payload }
    const text = clientEventText(this.#streamId, type, payload, typeSource)
    return { text, end: type === 'done' || type === 'error' ? type : undefined }
  }
}

/** Reads an agent's event. Undefined if its data is not JSON; `invalid` if it must not be passed on. */
function readEvent({ event, data }: ServerSentEvent): Reading<string> | 'invalid' | undefined {
  const json = parseData(data)
  if (json === undefined || json === 'invalid') return json
  const { text: source, value } = json
  if (!isJsonObject(value)) return { type: 'message', payload: source }
  return readObject(event, { source, value, member: (key) => memberText(source, key) })
}

function readObject<Source>(event: string | undefined, object: SourceObject<Source>): Reading<Source> {
  return readJsonRpc(object) ?? readNamedEvent(event, object) ?? { type: 'message', payload: object.source }
}

// Data holds one character for each byte. Clients would decode bytes that are not UTF-8 in different ways.
const BEYOND_ASCII = /[\u0080-\u00ff]/

/**
 * Parses the data of an event. The text is the data on one line. Undefined if the data is not JSON; `invalid` if it
 * must not be passed on.
 */
export function parseData(data: string): { readonly text: string; readonly value: unknown } | 'invalid' | undefined {
  if (BEYOND_ASCII.test(data) && !isUtf8(Buffer.from(data, 'latin1'))) return 'invalid'
  const json = parseJson(data, ANY_KEYS)
  if ('problem' in json) return json.exceeded === undefined ? undefined : 'invalid'
  return { text: data.includes('\n') ? lineOf(data) : data, value: json.value }
}

/** JSON text has line ends only between its tokens, and an event is one line. To replace millions as text takes a second. */
function lineOf(data: string): string {
  if (data.length <= LARGE_BODY_BYTES) return data.replaceAll('\n', ' ')
  const { buffer, byteOffset, byteLength } = allSteps(onOneLine(Buffer.from(data, 'latin1')))
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}

/** Reads a JSON-RPC response with a result of A2A 0.3 or 1.0. Any other result becomes a plain message. */
function readJsonRpc<Source>({ value, member }: SourceObject<Source>): Reading<Source> | undefined {
  if (value['jsonrpc'] !== '2.0') return undefined
  if (isJsonObject(value['error'])) {
    const payload = member('error')
    return payload === undefined ? undefined : { type: 'error', payload }
  }
  const payload = member('result')
  if (payload === undefined) return undefined
  const { result } = value
  if (!isJsonObject(result)) return { type: 'message', payload }
  return readA2a03(result, payload) ?? readA2a10(result, payload) ?? { type: 'message', payload }
}

/** Reads a result of A2A 0.3. Its member `kind` names its type. */
function readA2a03<Source>(value: JsonObject, payload: Source): Reading<Source> | undefined {
  switch (value['kind']) {
    case 'status-update':
      return readStatusUpdate(value, PHASES_03, payload)
    case 'artifact-update':
      return { type: 'artifact', payload }
    case 'task':
      return readTask(value, PHASES_03, payload)
    case 'message':
      return { type: 'message', payload, ifEnded: 'done' }
    default:
      return undefined
  }
}

/** Reads a result of A2A 1.0. The name of its one member is its type. The payload is the whole result. */
function readA2a10<Source>(value: JsonObject, payload: Source): Reading<Source> | undefined {
  const { task, message } = value
  const statusUpdate = memberOf(value, 'statusUpdate')
  if (isJsonObject(statusUpdate)) return readStatusUpdate(statusUpdate, PHASES_10, payload)
  if (isJsonObject(memberOf(value, 'artifactUpdate'))) return { type: 'artifact', payload }
  if (isJsonObject(task)) return readTask(task, PHASES_10, payload)
  return isJsonObject(message) ? { type: 'message', payload, ifEnded: 'done' } : undefined
}

/** The phase of a task: over with success, over without, waiting for the client, or going on. */
type TaskPhase = 'completed' | 'failed' | 'interrupted' | 'open'

/** The phase of each state; that of any other is `open`. */
type Phases = ReadonlyMap<unknown, TaskPhase>

const PHASES_03: Phases = new Map<unknown, TaskPhase>([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['rejected', 'failed'],
  ['canceled', 'failed'],
  ['input-required', 'interrupted'],
  ['auth-required', 'interrupted'],
])

const PHASES_10: Phases = new Map<unknown, TaskPhase>([
  ['TASK_STATE_COMPLETED', 'completed'],
  ['TASK_STATE_FAILED', 'failed'],
  ['TASK_STATE_REJECTED', 'failed'],
  ['TASK_STATE_CANCELED', 'failed'],
  // The spelling of some releases of the protocol's definition.
  ['TASK_STATE_CANCELLED', 'failed'],
  ['TASK_STATE_INPUT_REQUIRED', 'interrupted'],
  ['TASK_STATE_AUTH_REQUIRED', 'interrupted'],
])

function phaseOf({ status }: JsonObject, phases: Phases): TaskPhase {
  return (isJsonObject(status) ? phases.get(status['state']) : undefined) ?? 'open'
}

/** Reads a task. The stream ends when the agent ends it, not before. */
function readTask<Source>(task: JsonObject, phases: Phases, payload: Source): Reading<Source> {
  const phase = phaseOf(task, phases)
  if (phase === 'open') return { type: 'message', payload, ifEnded: 'open' }
  return { type: 'message', payload, ifEnded: phase === 'failed' ? 'error' : 'done' }
}

/** Reads an update of a task's status. A final state ends the stream, as does an interruption that is marked as final. */
function readStatusUpdate<Source>(update: JsonObject, phases: Phases, payload: Source): Reading<Source> {
  const phase = phaseOf(update, phases)
  if (phase === 'completed' || (phase === 'interrupted' && update['final'] === true)) return { type: 'done', payload }
  if (phase === 'failed') return { type: 'error', payload }
  return { type: 'status_update', payload, ifEnded: phase === 'interrupted' ? 'done' : 'open' }
}

/** The types of the gateway's own events. */
const KNOWN: ReadonlySet<string> = new Set([...ENVELOPE_TYPES.values(), 'message'])

/**
 * Reads events that have the gateway's names: `event: task.status|task.artifact|task.done|task.error`, with data
 * `{type, payload}`. If name and type differ, the name decides, because clients go by it. Data without a payload
 * member is the payload itself. Without such a name, data needs a type and a payload.
 */
function readNamedEvent<Source>(
  event: string | undefined,
  { source, value, member }: SourceObject<Source>,
): Reading<Source> | undefined {
  const { type } = value
  const named = event === undefined ? undefined : ENVELOPE_TYPES.get(event)
  const payload = Object.hasOwn(value, 'payload') ? member('payload') : undefined
  if (named !== undefined) return ownReading(named, payload ?? source)
  if (typeof type !== 'string' || payload === undefined) return undefined
  return KNOWN.has(type) ? ownReading(type, payload) : { type, payload, typeSource: member('type') }
}

function ownReading<Source>(type: string, payload: Source): Reading<Source> {
  if (type === 'message') return { type, payload, ifEnded: 'done' }
  return type === 'status_update' ? { type, payload, ifEnded: 'open' } : { type, payload }
}
