import { Buffer } from 'node:buffer'

import type { ServerSentEvent } from '../stream/event-reader.ts'
import { EventReader } from '../stream/event-reader.ts'
import { fromBytes } from '../stream/native-events.ts'
import { isObject, memberOf, parsedJson } from '../wire/index.ts'
import { LOG_ENDS } from '../runs/logged-events.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { RunChunk, RunLog } from '../runs/run-log.ts'

/** The kind of an event: one of A2A, a plain answer, the end of the answer, or one that only the agent defines. */
export type RunEventKind = 'task' | 'status' | 'artifact' | 'message' | 'answer' | 'end' | 'error' | 'other'

/** An event of a run, for operators. */
export interface RunEvent {
  /** 1, 2, 3 … for each run. */
  readonly sequence: number
  /** The time at which it became durable, in ms since the epoch. */
  readonly at: number
  readonly kind: RunEventKind
  /** The state of the task that the event names, as the agent wrote it. */
  readonly state?: string | undefined
  /** The size of the payload, in bytes. */
  readonly size: number
  /** The beginning of the payload. */
  readonly payload: Uint8Array
}

/** A page of the events of a run. */
export interface RunEvents {
  readonly run: string
  /** The ClientID of the caller. */
  readonly callerId: string
  /** The sequence of the first event that is kept. */
  readonly firstSequence: number
  /** Oldest first. */
  readonly items: readonly RunEvent[]
  /** The sequence at which the next page begins; undefined if this page has the last event so far. */
  readonly next: number | undefined
  /** True if the run has no further events than those in the log. */
  readonly isOver: boolean
}

export interface RunEventsOptions {
  /** The sequence of the first event. @default the first that is kept */
  readonly from?: number | undefined
  /** The most events. */
  readonly limit: number
  /** The most bytes of each payload. */
  readonly maxPayloadBytes: number
}

/** The most bytes of payloads in one page. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** Larger events are not parsed for their kind. */
const MAX_PARSED = 262_144

/**
 * Reads events of a run from its log. Resolves with undefined for an unknown run.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function readRunEvents(
  log: RunLog,
  run: string,
  { from = 1, limit, maxPayloadBytes }: RunEventsOptions,
): Promise<RunEvents | undefined> {
  const first = await log.first(run)
  if (first === undefined) return undefined
  const page = new EventPage(from, limit, maxPayloadBytes)
  let last: RunChunk = first
  // Events before the first one that is kept were removed.
  let chunk = from <= first.first ? first : await log.find(run, from)
  for (; chunk !== undefined; chunk = await log.read(run, chunk.number + 1)) {
    last = chunk
    page.add(chunk)
    if (page.isFull) break
  }
  return {
    run,
    callerId: first.callerId,
    firstSequence: first.first,
    items: page.items,
    next: page.next,
    isOver: last.end && page.next === undefined,
  }
}

class EventPage {
  readonly items: RunEvent[] = []
  /** The sequence of the first event that did not fit. */
  next: number | undefined
  readonly #from: number
  readonly #limit: number
  readonly #maxPayloadBytes: number
  readonly #reader: EventReader
  /** The sequence of the last event that was read; undefined before the first chunk that begins with an event. */
  #sequence: number | undefined
  #bytes = 0
  #at = 0

  constructor(from: number, limit: number, maxPayloadBytes: number) {
    this.#from = from
    this.#limit = limit
    this.#maxPayloadBytes = maxPayloadBytes
    this.#reader = new EventReader(Infinity, (event) => this.#onEvent(event))
  }

  get isFull(): boolean {
    return this.next !== undefined
  }

  add({ body, continues, first, reply, writtenAt = 0 }: RunChunk): void {
    this.#at = writtenAt
    if (reply !== undefined) {
      this.#push(first, { kind: reply.error === '' ? 'answer' : 'error', bytes: replyBytes(reply) })
      return
    }
    // The beginning of the event is in a chunk that was removed, or that is before the page.
    if (this.#sequence === undefined && continues) return
    this.#sequence ??= first - 1
    this.#reader.feed(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
  }

  #onEvent(event: ServerSentEvent): void {
    this.#sequence = (this.#sequence ?? 0) + 1
    if (this.#sequence >= this.#from) {
      this.#push(this.#sequence, { ...readKind(event), bytes: Buffer.from(event.data, 'latin1') })
    }
  }

  #push(
    sequence: number,
    { bytes, ...event }: Pick<RunEvent, 'kind' | 'state'> & { readonly bytes: Uint8Array },
  ): void {
    if (this.next !== undefined) return
    if (this.items.length === this.#limit || this.#bytes >= MAX_PAGE_BYTES) {
      this.next = sequence
      return
    }
    // A copy, so that the page does not hold the rest of a large event.
    const payload = Uint8Array.from(bytes.subarray(0, this.#maxPayloadBytes))
    this.#bytes += payload.byteLength
    this.items.push({ sequence, at: this.#at, ...event, size: bytes.byteLength, payload })
  }
}

/** Returns the body of an answer; of one that failed without a body, the reason. */
function replyBytes({ body, error }: AgentReply): Uint8Array {
  return body.byteLength === 0 ? Buffer.from(error) : body
}

/** The members of a result of A2A 1.0, and the kinds of a result of A2A 0.3. */
const KINDS: ReadonlyMap<unknown, RunEventKind> = new Map([
  ['task', 'task'],
  ['statusUpdate', 'status'],
  ['artifactUpdate', 'artifact'],
  ['message', 'message'],
  ['status-update', 'status'],
  ['artifact-update', 'artifact'],
])

/** The ends that the gateway writes into a log. */
const ENDS: ReadonlyMap<string | undefined, RunEventKind> = new Map([
  [LOG_ENDS.answer, 'answer'],
  [LOG_ENDS.ended, 'end'],
  [LOG_ENDS.failed, 'error'],
])

function readKind({ data, event }: ServerSentEvent): Pick<RunEvent, 'kind' | 'state'> {
  const end = ENDS.get(event)
  if (end !== undefined) return { kind: end }
  const response = data.length > MAX_PARSED ? undefined : parsedJson(fromBytes(data))
  if (!isObject(response)) return { kind: 'other' }
  if (isObject(response['error'])) return { kind: 'error' }
  const { result } = response
  if (!isObject(result)) return { kind: 'other' }
  const own = KINDS.get(result['kind'])
  if (own !== undefined) return { kind: own, state: stateIn(result) }
  for (const member of ['task', 'statusUpdate', 'artifactUpdate', 'message']) {
    const content = memberOf(result, member)
    if (isObject(content)) return { kind: KINDS.get(member) ?? 'other', state: stateIn(content) }
  }
  return { kind: 'other' }
}

function stateIn({ status }: { readonly [member: string]: unknown }): string | undefined {
  const state = isObject(status) ? status['state'] : undefined
  return typeof state === 'string' ? state.slice(0, MAX_STATE) : undefined
}

/** The states of A2A are shorter. */
const MAX_STATE = 64
