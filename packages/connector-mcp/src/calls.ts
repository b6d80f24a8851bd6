import type { Entry } from '@signalbox/broker-core/internal'
import { OrderedSet } from '@signalbox/broker-core/internal'
import { InFlight } from '@signalbox/http-kit/internal'

/** A running tool call, as the rest of the connector sees it. */
export interface RunningCall {
  /** The start of the call, by `performance.now()`. */
  readonly startedAt: number
  /** `true` if the connector's time limit for tools applies. */
  readonly hasTimeout: boolean
  /** `true` if the call ends at once when the server shuts down. Other calls may finish within the drain time. */
  readonly endsAtShutdown: boolean
  /**
   * The key that `notifications/cancelled` is matched by. `undefined` for a client without a session, whose calls
   * cannot be canceled.
   */
  readonly key: string | undefined
  /** `true` while the call waits, so that it can be ended early. */
  readonly waits: boolean
  end(reason: CallEndReason): void
}

/** The running tool calls: counts them, ends them after the time limit, and ends waiting calls early. */
export class Calls {
  readonly timeoutMs: number
  readonly #inFlight = new InFlight()
  /**
   * In the order of their start. All calls with a time limit have the same one, so this is the order of their end
   * too.
   */
  readonly #running = new OrderedSet<RunningCall>()
  #timer: NodeJS.Timeout | undefined

  /** @param timeoutMs The time limit of calls without their own timeout or wait, in ms */
  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  /**
   * Adds a call. Remove its entry when the call cannot be ended early any more: it is answered, or its client is
   * gone.
   */
  begin(call: RunningCall): Entry {
    this.#inFlight.begin()
    // One timer for all calls: it is set for the oldest when it fires, not with each call.
    if (call.hasTimeout && this.#timer === undefined) this.#arm(call)
    return this.#running.add(call)
  }

  /** Marks the work of a tool as done or abandoned. Call it once for each {@link begin}. */
  finish(): void {
    this.#inFlight.finish()
  }

  /** Ends the call with this key if it waits. */
  cancel(key: string): void {
    this.#waiting()
      .findLast((call) => call.key === key)
      ?.end('cancelled')
  }

  /** Ends waiting reads at once. Gives the other calls `graceMs` to finish, and then ends those that still wait. */
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

/** Time for an ended call to answer, in ms. */
const LAST_MS = 1_000

/**
 * Returns the key that matches `notifications/cancelled` to a call. Returns `undefined` without a session: ids of
 * different clients could be equal, and one client would cancel the call of another. Only the last part of the key
 * may contain a space.
 */
export function callKey(clientId: string, sessionId: string | undefined, requestId: string): string | undefined {
  return sessionId === undefined ? undefined : `${clientId} ${sessionId} ${requestId}`
}

/** The reason for which a tool call ended without a result. */
export type CallEndReason = 'cancelled' | 'disconnected' | 'shutdown' | 'timeout'

const MESSAGES: Readonly<Record<CallEndReason, string>> = {
  cancelled: 'the client cancelled the call',
  disconnected: 'the client disconnected',
  shutdown: 'the server is shutting down; try again',
  timeout: 'the tool exceeded its time limit',
}

/** The `reason` of a tool call's abort signal. Clients never see it. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: CallEndReason

  constructor(reason: CallEndReason) {
    super(MESSAGES[reason])
    this.reason = reason
  }
}
