import { randomUUID } from 'node:crypto'

import type { JsonObject } from '@signalbox/http-kit'

import { chunksOf, lastEventOf } from '../runs/chunks.ts'
import { LoggedEvents, logText } from '../runs/logged-events.ts'
import type { ChunkDelivery, RunChunk, RunLog } from '../runs/run-log.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { asBytes } from '../stream/native-events.ts'
import type { KnownRun, ParkedOutcome } from './parked-run.ts'

const ROUND_END = new LoggedEvents('1.0', () => {}).ended().text

/** Writes the events of tasks of inboxes into the log of runs. */
export class TaskLog {
  readonly #log: RunLog

  constructor(log: RunLog) {
    this.#log = log
  }

  /**
   * Says in the log of a task that another lessee begins. Events that an earlier one wrote need it, in whichever phase it
   * left the task: it may have put it back, or a node was lost between the lease and this.
   */
  async beginAgain(state: KnownRun): Promise<void> {
    for (;;) {
      const last = await this.#log.last(state.run)
      const isLessees = last?.delivery !== undefined && last.delivery.lease !== ''
      if (!isLessees) return
      // The earlier lessee may write at the same time.
      if (await this.append(state, [submittedAgain(state)], 'open', undefined, last)) return
    }
  }

  /** Appends events to the log of a task. Resolves with false if another node did so first. */
  async append(
    { agentId, callerId, run }: KnownRun,
    events: readonly JsonObject[],
    phase: TaskPhase,
    delivery?: Pick<ChunkDelivery, 'lease' | 'accepted'>,
    known?: RunChunk,
  ): Promise<boolean> {
    const log = this.#log
    const last = known ?? (await log.last(run))
    const texts = events.map((result) =>
      logText(undefined, asBytes(JSON.stringify({ jsonrpc: '2.0', id: null, result }))),
    )
    // Streams end with the round.
    if (phase !== 'open') texts.push(ROUND_END)
    const common = { agentId, callerId, wire: '1.0', taskId: run } as const
    let number = last?.number ?? 0
    let total = last?.delivery?.total ?? 0
    const first = last === undefined ? 1 : lastEventOf(last) + 1
    for (const part of chunksOf(texts, first)) {
      const complete = Math.min(events.length, part.first - first + (part.more ? 0 : countOf(part.body)))
      const accepted = delivery && delivery.accepted + complete
      total += part.body.byteLength
      const chunk = {
        ...common,
        ...part,
        number: ++number,
        end: phase === 'over' && part.isLast,
        // A chunk of the gateway continues the count, under no lease.
        delivery: { lease: delivery?.lease ?? '', accepted: accepted ?? 0, total },
      }
      if (!(await log.append(run, chunk))) return false
    }
    return true
  }
}

/** Returns the number of events that end in a chunk. */
function countOf(body: Uint8Array): number {
  return lastEventOf({ body, first: 1, more: false, continues: false })
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
