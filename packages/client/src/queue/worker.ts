import type { ClientContext, Running } from '../client-context.ts'
import type { Duration } from '../duration.ts'
import { milliseconds, wholeSeconds } from '../duration.ts'
import { argumentError, SignalboxError } from '../errors.ts'
import { backoff, pause } from '../pause.ts'
import type { ErrorListener } from '../report.ts'
import type { Decode } from '../schema.ts'
import { isRetryable } from '../transport.ts'
import { Lease, MAX_LEASE_SECONDS } from './leased-message.ts'
import { receiveMessages } from './receive.ts'
import type { Delivery } from './receive.ts'
import type { WorkHandler } from './work.ts'
import { WorkItem } from './work-item.ts'

export interface WorkOptions {
  /** Messages that are worked on at the same time, 1 to 1,000. @default 1 */
  readonly concurrency?: number | undefined
  /** The lease of a message, 1 s to 12 h. It is renewed while the handler runs. @default '30s' */
  readonly lease?: Duration | undefined
  /** The time until a failed message can be received again, by its number of receives. @default 1 s, doubled each time, at most 5 min */
  readonly backoff?: ((receives: number) => Duration) | undefined
  /** The time that `drain` waits if the signal or the client ends the pool. @default '25s' */
  readonly drainTimeout?: Duration | undefined
  /** Drains the pool. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors of the handler and of the connection, both of which are tried again. @default the client's */
  readonly onError?: ErrorListener | undefined
}

/** The longest time between two attempts of a failed message without options, in ms. */
const MAX_DELAY_MS = 300_000

/** Seconds that an empty queue is asked for. */
const WAIT_SECONDS = 20

/** Workers on a queue. They run until they are drained. */
export class WorkerPool<T = unknown> implements Running, AsyncDisposable {
  /** Resolves when the pool has ended; rejects with an error that no other attempt can cure, such as FORBIDDEN. */
  readonly closed: Promise<void>
  readonly #context: ClientContext
  readonly #channel: string
  readonly #decode: Decode<T>
  readonly #handler: WorkHandler<T>
  readonly #concurrency: number
  readonly #leaseSeconds: number
  readonly #delayMs: (receives: number) => number
  readonly #drainTimeout: Duration
  readonly #onError: ErrorListener
  readonly #stop = new AbortController()
  readonly #items = new Map<WorkItem<T>, Promise<void>>()
  #wake: (() => void) | undefined

  /** @internal */
  constructor(
    context: ClientContext,
    channel: string,
    decode: Decode<T>,
    options: WorkOptions,
    handler: WorkHandler<T>,
  ) {
    const { concurrency = 1, lease = '30s', backoff: delay = standardDelay, signal } = options
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000) {
      throw argumentError('concurrency', concurrency, 'a whole number from 1 to 1000')
    }
    this.#context = context
    this.#channel = channel
    this.#decode = decode
    this.#handler = handler
    this.#concurrency = concurrency
    this.#leaseSeconds = wholeSeconds('lease', lease, 1, MAX_LEASE_SECONDS)
    this.#delayMs = (receives) => Math.min(milliseconds('backoff', delay(receives)), MAX_LEASE_SECONDS * 1000)
    this.#drainTimeout = options.drainTimeout ?? '25s'
    this.#onError = options.onError ?? context.onError
    milliseconds('drainTimeout', this.#drainTimeout)
    const drain = (): void => void this.drain()
    signal?.addEventListener('abort', drain, { once: true })
    context.running.add(this)
    this.closed = this.#run(signal).finally(() => {
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
        const deliveries = await this.#receive(free)
        failures = 0
        if (this.#stop.signal.aborted) await this.#giveBack(deliveries)
        else for (const delivery of deliveries) this.#start(delivery)
      } catch (error) {
        if (this.#stop.signal.aborted) break
        if (!(error instanceof SignalboxError) || !isRetryable(error, true)) throw error
        this.#onError(error)
        await pause(backoff(failures++, error.retryAfterMs), this.#stop.signal)
      }
    }
    await Promise.all(this.#items.values())
  }

  #receive(max: number): Promise<readonly Delivery[]> {
    return receiveMessages(this.#context, {
      channel: this.#channel,
      max,
      waitSeconds: WAIT_SECONDS,
      leaseSeconds: this.#leaseSeconds,
      signal: this.#stop.signal,
    })
  }

  /** Returns messages to the queue that arrived while the pool was drained. */
  async #giveBack(deliveries: readonly Delivery[]): Promise<void> {
    await Promise.all(deliveries.map(({ receipt }) => new Lease(this.#context.transport, receipt).nack(0)))
  }

  #start(delivery: Delivery): void {
    const item = new WorkItem<T>(delivery, {
      transport: this.#context.transport,
      leaseMs: this.#leaseSeconds * 1000,
      delayMs: this.#delayMs,
      decode: this.#decode,
      handler: this.#handler,
      onError: this.#onError,
    })
    const alike = [...this.#items].filter(([other]) => other.resembles(delivery))
    // A handler that ignores its signal must not keep the pool from ending.
    const done = Promise.race([item.run(endOfLost(alike)), item.released]).finally(() => {
      this.#items.delete(item)
      this.#wake?.()
    })
    this.#items.set(item, done)
  }
}

function standardDelay(receives: number): number {
  return Math.min(MAX_DELAY_MS, 1000 * 2 ** (Math.min(receives, 20) - 1))
}

/** Resolves when those handlers have ended whose messages were delivered again, so that none is worked on twice at a time. */
async function endOfLost<T>(items: readonly (readonly [WorkItem<T>, Promise<void>])[]): Promise<void> {
  await Promise.all(items.map(async ([item, done]) => ((await item.isLost()) ? done : undefined)))
}
