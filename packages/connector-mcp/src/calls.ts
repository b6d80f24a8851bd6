import { OrderedSet } from '@signalbox/broker-core/internal'
import type { Entry } from '@signalbox/broker-core/internal'
import { InFlight } from '@signalbox/http-kit'

import type { CallEndReason } from './errors.ts'

/** A tool call that is under way, as the rest of the connector sees it. */
export interface RunningCall {
  /** By `performance.now()`. */
  readonly startedAt: number
  /** Whether the connector's time limit for tools bounds it (M13). */
  readonly hasTimeout: boolean
  /** Whether it ends at once when the server shuts down; others may finish within the drain time. */
  readonly endsAtShutdown: boolean
  /** Known only to a client that has a session; where it is undefined the call cannot be cancelled by a notification. */
  readonly key: string | undefined
  /** Whether it waits for something and listens to being ended meanwhile. */
  readonly waits: boolean
  end(reason: CallEndReason): void
}

/** The tool calls under way: how many there are, when their time is over, and those that can be ended while they wait. */
export class Calls {
  readonly timeoutMs: number
  readonly #inFlight = new InFlight()
  /** In the order of their start, and so of their end: all that have a time have the same. */
  readonly #running = new OrderedSet<RunningCall>()
  #timer: NodeJS.Timeout | undefined

  /** @param timeoutMs For calls that have no timeout or wait of their own. */
  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  /** The call leaves its place when nothing ends it from outside any more: it has its answer, or nobody waits for one. */
  begin(call: RunningCall): Entry {
    this.#inFlight.begin()
    // One timer for all of them: it is armed for the oldest when it fires, not with each call.
    if (call.hasTimeout && this.#timer === undefined) this.#arm(call)
    return this.#running.add(call)
  }

  /** The tool has done its work, or will not be waited for. Once for each {@link begin}. */
  finish(): void {
    this.#inFlight.finish()
  }

  /** Ends the call with this key, if it waits (M5). */
  cancel(key: string): void {
    this.#waiting()
      .findLast((call) => call.key === key)
      ?.end('cancelled')
  }

  /** Ends waiting reads at once, gives the other calls `graceMs` to finish, then ends those that wait still. */
  async close(graceMs: number): Promise<void> {
    await this.#drain(graceMs)
    clearTimeout(this.#timer)
  }

  async #drain(graceMs: number): Promise<void> {
    for (const call of this.#waiting()) if (call.endsAtShutdown) call.end('shutdown')
    if (!(await this.#inFlight.idleWithin(graceMs))) {
      for (const call of this.#waiting()) call.end('shutdown')
      await this.#inFlight.idleWithin(LAST_MS)
    }
  }

  #waiting(): RunningCall[] {
    return this.#running.members().filter(({ waits }) => waits)
  }

  #arm(oldest: RunningCall): void {
    const left = Math.max(oldest.startedAt + this.timeoutMs - performance.now(), 1)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      for (const call of this.#running.members()) {
        if (!call.hasTimeout) continue
        if (performance.now() - call.startedAt < this.timeoutMs) {
          this.#arm(call)
          break
        }
        call.end('timeout')
      }
    }, left)
    this.#timer.unref()
  }
}

/** What a call that was told to end is given to say so. */
const LAST_MS = 1_000

/**
 * What `notifications/cancelled` is matched by (M5). Without a session the ids of different clients could not be told
 * apart, and one would cancel another's call. None of the parts holds a blank, but the last.
 */
export function callKey(clientId: string, sessionId: string | undefined, requestId: string): string | undefined {
  return sessionId === undefined ? undefined : `${clientId} ${sessionId} ${requestId}`
}
