import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'

import type { JsonObject } from '@signalbox/http-kit'

import { chunksOf, lastEventOf } from '../runs/chunks.ts'
import { LoggedEvents, logText } from '../runs/logged-events.ts'
import type { ChunkDelivery, RunLog } from '../runs/run-log.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { asBytes } from '../stream/native-events.ts'
import type { KnownRun, ParkedOutcome } from './parked-index.ts'

const ROUND_END = new LoggedEvents('1.0', () => {}).ended().text

/** The end of the log of a task. */
export interface TaskEnd {
  /** The number of the last chunk; 0 if there is none. */
  readonly number: number
  /** The sequence of the last event; 0 if there is none. */
  readonly sequence: number
  /** True if the task has no further events. */
  readonly isOver: boolean
  /** True if the last event ends a round: the task is over, or waits for its caller. */
  readonly endsRound: boolean
  readonly delivery: ChunkDelivery | undefined
}

/** The end of a log without events. */
export const NO_EVENTS: TaskEnd = { number: 0, sequence: 0, isOver: false, endsRound: false, delivery: undefined }

/** The most ends that are kept in memory, and the time for which one is used: the log may lose its chunks. */
const MAX_ENDS = 1_000
const END_MS = 600_000

/** Writes the events of tasks of inboxes into the log of runs. */
export class TaskLog {
  readonly #log: RunLog
  /** The last ends that this node has seen, oldest first: later chunks are searched from there. */
  readonly #ends = new Map<string, { readonly end: TaskEnd; readonly at: number }>()

  readonly #endMs: number

  /** @param keepMs The time for which the log keeps events */
  constructor(log: RunLog, keepMs: number) {
    this.#log = log
    this.#endMs = Math.min(END_MS, keepMs / 2)
  }

  /** Returns the end of the log of a task. @throws BrokerError ENGINE_UNAVAILABLE */
  async end(run: string): Promise<TaskEnd> {
    const { at = -Infinity, end = NO_EVENTS } = this.#ends.get(run) ?? {}
    const known = performance.now() - at < this.#endMs ? end : NO_EVENTS
    const last = await this.#log.last(run, known.number)
    if (last === undefined) return known
    const { body, delivery, end: isOver, number } = last
    const endsRound = Buffer.from(body.subarray(-ROUND_END.length)).toString('latin1') === ROUND_END
    return this.#keep(run, { number, sequence: lastEventOf(last), isOver, endsRound, delivery })
  }

  /**
   * Writes the first event of a message if the node that parked it did not, or says that another lessee begins. Events
   * that an earlier one wrote need it, in whichever phase it left the task: it may have put it back, or a node was lost
   * between the lease and this.
   */
  async begin(state: KnownRun, task: JsonObject, end: TaskEnd): Promise<void> {
    for (let now = end; ; now = await this.end(state.run)) {
      const isMissing = now.sequence <= state.start
      const isLessees = now.delivery !== undefined && now.delivery.lease !== ''
      if (!isMissing && !isLessees) return
      // The earlier lessee may write at the same time.
      if (await this.append(state, [isMissing ? { task } : submittedAgain(state)], 'open', now)) return
    }
  }

  /**
   * Appends events to the log of a task. Resolves with false if another node did so first.
   * @param after The end of the log until now
   * @param lease The digest of the lessee's receipt. @default none: the gateway writes them
   */
  async append(
    { agentId, callerId, run }: KnownRun,
    events: readonly JsonObject[],
    phase: TaskPhase,
    after: TaskEnd,
    lease = '',
  ): Promise<boolean> {
    const texts = events.map((result) =>
      logText(undefined, asBytes(JSON.stringify({ jsonrpc: '2.0', id: null, result }))),
    )
    // Streams end with the round.
    if (phase !== 'open') texts.push(ROUND_END)
    const common = { agentId, callerId, wire: '1.0', taskId: run } as const
    const before = lease === '' ? 0 : acceptedIn(after, lease)
    const first = after.sequence + 1
    let { number } = after
    let total = after.delivery?.total ?? 0
    for (const part of chunksOf(texts, first)) {
      const sequence = lastEventOf(part)
      const accepted = lease === '' ? 0 : before + Math.min(events.length, sequence - after.sequence)
      total += part.body.byteLength
      const delivery = { lease, accepted, total }
      const chunk = { ...common, ...part, number: ++number, end: phase === 'over' && part.isLast, delivery }
      if (!(await this.#log.append(run, chunk))) return false
      const endsRound = phase !== 'open' && part.isLast
      this.#keep(run, { number, sequence, isOver: chunk.end, endsRound, delivery })
    }
    return true
  }

  #keep(run: string, end: TaskEnd): TaskEnd {
    this.#ends.delete(run)
    this.#ends.set(run, { end, at: performance.now() })
    const [oldest = run] = this.#ends.keys()
    if (this.#ends.size > MAX_ENDS) this.#ends.delete(oldest)
    return end
  }
}

/** Returns the number of events that were accepted under a lease. */
export function acceptedIn({ delivery }: TaskEnd, lease: string): number {
  return delivery?.lease === lease ? delivery.accepted : 0
}

/** Returns the event that says that a task is with another lessee now. */
function submittedAgain({ attempt, contextId, run: taskId }: KnownRun): JsonObject {
  const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() }
  return {
    statusUpdate: { taskId, contextId, status, metadata: { 'signalbox.delivery': { state: 'delivered', attempt } } },
  }
}

/** Returns the last event of a task that the gateway has ended. */
export function outcomeEvent({ contextId, run: taskId }: KnownRun, { reason, state, text }: ParkedOutcome): JsonObject {
  const message = { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] }
  const status = { state, timestamp: new Date().toISOString(), message }
  return { statusUpdate: { taskId, contextId, status, metadata: { 'signalbox.reason': reason } } }
}
