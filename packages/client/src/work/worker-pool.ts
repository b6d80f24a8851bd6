import type { ClientContext, ErrorListener, Running, RunInTrace, TraceHeaders } from '../client-context.ts'
import { NO_TRACE } from '../client-context.ts'
import { argumentError, SignalboxError } from '../errors.ts'
import type { Duration } from '../time.ts'
import { backoff, milliseconds, pause } from '../time.ts'
import { isRetryable } from '../transport.ts'

export interface WorkOptions {
  /** Messages that are worked on at the same time, 1 to 1,000. @default 1 */
  readonly concurrency?: number | undefined
  /** The lease of a message, 1 s to 12 h. It is renewed while the handler runs. @default '30s' */
  readonly lease?: Duration | undefined
  /**
   * The time until a failed message can be received again, by its number of receives. `queue` leaves it to the retry
   * policy of the queue. @default 1 s, doubled each time, at most 5 min
   */
  readonly backoff?: ((receives: number) => Duration) | 'queue' | undefined
  /** The time that `drain` waits if the signal or the client ends the pool. @default '25s' */
  readonly drainTimeout?: Duration | undefined
  /** Drains the pool. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors of the handler and of the connection, both of which are tried again. @default the client's */
  readonly onError?: ErrorListener | undefined
}

/** The longest time between two attempts of a failed message without options, in ms. */
const MAX_DELAY_MS = 300_000

/** A leased message or request that a handler works on. */
export interface PoolItem {
  /** Items with the same key may be deliveries of the same message. */
  readonly key: string
  /** The trace in which the item was sent. */
  readonly trace: TraceHeaders | undefined
  /** Resolves when the item was returned before its handler ended. */
  readonly released: Promise<void>
  /**
   * Renews the lease at once. Aborts the handler's signal if it is lost. Never rejects.
   * @returns `true` if the lease is lost
   */
  isLost(): Promise<boolean>
  /**
   * Runs the handler and settles the item. Never rejects.
   * @param before The handler starts when this promise has resolved
   */
  run(before?: Promise<void>): Promise<void>
  /** Aborts the handler's signal, and returns the item for another delivery. Never rejects. */
  release(): Promise<void>
}

/** Leases up to `max` items, and waits for the first one. @throws SignalboxError, or the reason of the signal */
export type LeaseItems = (max: number, signal: AbortSignal) => Promise<readonly PoolItem[]>

/** Workers on a queue, or on the requests of an agent. They run until they are drained. */
export class WorkerPool implements Running, AsyncDisposable {
  /** Resolves when the pool has ended; rejects with an error that no other attempt can cure, such as FORBIDDEN. */
  readonly closed: Promise<void>
  readonly #lease: LeaseItems
  readonly #concurrency: number
  readonly #drainTimeout: Duration
  readonly #onError: ErrorListener
  readonly #runInTrace: RunInTrace
  readonly #stop = new AbortController()
  readonly #items = new Map<PoolItem, Promise<void>>()
  #wake: (() => void) | undefined

  /** @internal */
  constructor(context: ClientContext, options: Omit<WorkOptions, 'lease' | 'backoff'>, lease: LeaseItems) {
    const { concurrency = 1, signal } = options
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000) {
      throw argumentError('concurrency', concurrency, 'a whole number from 1 to 1000')
    }
    this.#lease = lease
    this.#concurrency = concurrency
    this.#drainTimeout = options.drainTimeout ?? '25s'
    this.#onError = options.onError ?? context.onError
    this.#runInTrace = context.runInTrace
    milliseconds('drainTimeout', this.#drainTimeout)
    const drain = (): void => void this.drain()
    signal?.addEventListener('abort', drain, { once: true })
    context.running.add(this)
    // The pool outlives the caller's trace.
    const ran = context.runInTrace(NO_TRACE, () => this.#run(signal))
    this.closed = ran.finally(() => {
      signal?.removeEventListener('abort', drain)
      context.running.delete(this)
    })
    // The error is reported to the listener as well, so a caller need not wait for the promise.
    this.closed.catch(this.#onError)
  }

  /** The number of messages that handlers work on. */
  get active(): number {
    return this.#items.size
  }

  /**
   * Receives no more messages, and waits for the handlers. After the time-out their signals abort, and their messages
   * return to the queue. Idempotent.
   * @param timeout The longest time to wait. Default: `drainTimeout`
   * @returns The number of messages that were returned to the queue
   */
  async drain(timeout: Duration = this.#drainTimeout): Promise<number> {
    const timeoutMs = milliseconds('timeout', timeout)
    this.#stop.abort()
    this.#wake?.()
    const ended = new AbortController()
    const idle = this.closed.catch(() => {}).then(() => ended.abort())
    await pause(timeoutMs, ended.signal)
    const left = [...this.#items.keys()]
    await Promise.all(left.map((item) => item.release()))
    await idle
    return left.length
  }

  /** Drains the pool. */
  async close(): Promise<void> {
    await this.drain()
    await this.closed.catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #run(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) this.#stop.abort()
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const free = this.#concurrency - this.#items.size
      if (free === 0) {
        await new Promise<void>((resolve) => (this.#wake = resolve))
        continue
      }
      try {
        const items = await this.#lease(free, this.#stop.signal)
        failures = 0
        // Items that arrived while the pool was drained are returned.
        if (this.#stop.signal.aborted) await Promise.all(items.map((item) => item.release()))
        else for (const item of items) this.#start(item)
      } catch (error) {
        if (this.#stop.signal.aborted) break
        if (!(error instanceof SignalboxError) || !isRetryable(error, true)) throw error
        this.#onError(error)
        await pause(backoff(failures++, error.retryAfterMs), this.#stop.signal)
      }
    }
    await Promise.all(this.#items.values())
  }

  #start(item: PoolItem): void {
    const alike = [...this.#items].filter(([{ key }]) => key === item.key)
    // A handler that ignores its signal must not keep the pool from ending.
    const ran = this.#runInTrace(item.trace ?? NO_TRACE, () => item.run(endOfLost(alike)))
    const done = Promise.race([ran, item.released]).finally(() => {
      this.#items.delete(item)
      this.#wake?.()
    })
    this.#items.set(item, done)
  }
}

/** Resolves when those handlers have ended whose messages were delivered again, so that none is worked on twice at a time. */
async function endOfLost(items: readonly (readonly [PoolItem, Promise<void>])[]): Promise<void> {
  await Promise.all(items.map(async ([item, done]) => ((await item.isLost()) ? done : undefined)))
}

/** Returns the time until a failed message can be received again, in ms, by its number of receives. */
export function delayOf(
  backoff: ((receives: number) => Duration) | undefined,
  maxSeconds: number,
): (receives: number) => number {
  const delay = backoff ?? standardDelay
  return (receives) => Math.min(milliseconds('backoff', delay(receives)), maxSeconds * 1000)
}

function standardDelay(receives: number): number {
  return Math.min(MAX_DELAY_MS, 1000 * 2 ** (Math.min(receives, 20) - 1))
}
