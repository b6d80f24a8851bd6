import { Buffer } from 'node:buffer'

import type { Steps } from '@signalbox/http-kit'
import { allSteps, isJsonObject } from '@signalbox/http-kit/internal'

import type { ServerSentEvent } from '../stream/event-reader.ts'
import type { ClientBytes, ClientText, EventConverter } from '../stream/events.ts'
import type { StreamFailure } from '../stream/failures.ts'
import { STREAM_FAILURES } from '../stream/failures.ts'
import { asBytes, fromBytes } from '../stream/native-events.ts'
import { OwnEvents, parseData } from '../stream/own-events.ts'
import type { WireVersion } from '../wire/index.ts'
import { isObject, parseForTranslation } from '../wire/index.ts'
import type { SeenTask } from './seen-task.ts'
import { seenTask } from './seen-task.ts'

/** The names of the events with which the gateway ends a log. An agent's events cannot have them. */
const OWN = 'signalbox.'
export const LOG_ENDS = { answer: `${OWN}answer`, ended: `${OWN}ended`, failed: `${OWN}failed` } as const

/** A message, or a state in which a task does not go on. Texts of an agent may match, and are then parsed. */
const OTHER_STATE = /"(?:message|task)"\s*:|"state"\s*:\s*"(?!TASK_STATE_WORKING"|working")|\\u/

/**
 * Writes an agent's events into the log of a run, as they came: readers convert them into their version of A2A, or into
 * the gateway's own events. Texts hold one character for each byte.
 */
export class LoggedEvents implements EventConverter {
  readonly #wire: WireVersion | undefined
  readonly #seen: (task: SeenTask) => void
  #gap: number | undefined
  #hasTask = false
  /** Recognizes the last event of an agent that speaks its own dialect. */
  readonly #dialect: OwnEvents | undefined

  /**
   * @param wire The version of A2A that the agent speaks; undefined for a stream in the agent's own dialect
   * @param seen Called with the task that an event names, before its text is returned
   * @param gap The sequence of the first event, if events before it may be missing. @default none are
   */
  constructor(wire: WireVersion | undefined, seen: (task: SeenTask) => void, gap?: number) {
    this.#gap = gap
    this.#wire = wire
    this.#seen = seen
    this.#dialect = wire === undefined ? new OwnEvents('') : undefined
  }

  next(event: ServerSentEvent): ClientText {
    const { data } = event
    if (this.#isProgress(event)) return { text: logText(undefined, data), end: undefined }
    const json = parseData(data)
    if (json === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    const isResponse = json !== undefined && isJsonObject(json.value) && json.value['jsonrpc'] === '2.0'
    if (this.#wire !== undefined && !isResponse) return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    const task = json === undefined ? undefined : seenTask(json.value)
    if (task !== undefined) {
      this.#hasTask = true
      this.#seen(task)
    }
    const name = event.event?.startsWith(OWN) === true ? undefined : event.event
    const end = this.#dialect?.next(event).end
    // A failure of the dialect is one of the conversion: each reader gets it from its own.
    const text = this.#gap === undefined ? (json?.text ?? data) : this.#marked(json?.text ?? data)
    return { text: logText(name, text), end: typeof end === 'number' ? 'error' : end }
  }

  /**
   * Returns true for an event that changes neither the task nor its phase, as most do. It is not parsed here: its readers
   * parse it, and get the error for one that is not valid.
   */
  #isProgress({ data, event }: ServerSentEvent): boolean {
    if (!this.#hasTask || this.#gap !== undefined || this.#wire === undefined || event !== undefined) return false
    return data.startsWith('{"jsonrpc"') && !data.includes('"error"') && !OTHER_STATE.test(data)
  }

  /** Marks the first event after a gap. */
  #marked(data: string): string {
    const gap = { from: this.#gap ?? 1 }
    this.#gap = undefined
    const response = parseForTranslation(fromBytes(data))
    return isObject(response)
      ? asBytes(JSON.stringify({ ...response, result: withGap(response['result'], gap) }))
      : data
  }

  /** @inheritdoc Data that is not JSON may be the beginning of some that is. */
  cutOff(event: ServerSentEvent): ClientText | undefined {
    return parseData(event.data) === undefined ? undefined : this.next(event)
  }

  /** @inheritdoc The log has the answer as one event. */
  *plainAnswer(body: Uint8Array): Steps<ClientText> {
    yield
    const data = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
    return { text: logText(LOG_ENDS.answer, data), end: 'done' }
  }

  ended(): ClientText {
    return { text: logText(LOG_ENDS.ended, '{}'), end: 'done' }
  }

  /** @inheritdoc The run may go on over another connection. */
  broken(): ClientText {
    return BROKEN
  }

  failure(failure: StreamFailure): ClientText {
    return { text: logText(LOG_ENDS.failed, asBytes(JSON.stringify(failure))), end: failure.code }
  }
}

/** The end of a connection whose run is not over. */
const BROKEN: ClientText = { text: '', end: 'error' }

/** Returns an event as the log has it. */
export function logText(event: string | undefined, data: string): string {
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${lines}\n\n`
}

/** Converts an event of a log for its reader; undefined if there is nothing to send for it. */
export function convertLogged(converter: EventConverter, event: ServerSentEvent): ClientText | undefined {
  if (event.event === LOG_ENDS.ended) return converter.ended()
  if (event.event === LOG_ENDS.answer) return joined(allSteps(converter.plainAnswer(Buffer.from(event.data, 'latin1'))))
  if (event.event !== LOG_ENDS.failed) return converter.next(event)
  const failure: unknown = JSON.parse(fromBytes(event.data))
  return converter.failure(isFailure(failure) ? failure : STREAM_FAILURES.INTERRUPTED)
}

/** The member of an event's metadata that says that events before it are missing, with the sequences of the missing ones. */
const GAP = 'signalbox.gap'

/** Returns a result of either version of A2A, marked as one before which events are missing. */
export function withGap(result: unknown, gap: { readonly from: number; readonly to?: number }): unknown {
  if (!isObject(result)) return result
  const member = ['task', 'statusUpdate', 'artifactUpdate', 'message'].find((name) => isObject(result[name]))
  const event = member === undefined ? result : result[member]
  const metadata = isObject(event) && isObject(event['metadata']) ? event['metadata'] : {}
  const marked = { ...(isObject(event) ? event : {}), metadata: { ...metadata, [GAP]: gap } }
  return member === undefined ? marked : { ...result, [member]: marked }
}

function joined(answer: ClientText | ClientBytes): ClientText {
  return 'text' in answer ? answer : { text: Buffer.concat(answer.parts).toString('latin1'), end: answer.end }
}

function isFailure(value: unknown): value is StreamFailure {
  return isJsonObject(value) && typeof value['code'] === 'number' && isJsonObject(value['native'])
}
