import type { ClientContext, ErrorListener, Running } from '../client-context.ts'
import { argumentError, SignalboxError } from '../errors.ts'
import type { Duration } from '../time.ts'
import { backoff, milliseconds, pause, wholeSeconds } from '../time.ts'
import type { Transport } from '../transport.ts'
import { isRetryable } from '../transport.ts'
import type { Decode } from '../typed-channel.ts'
import type { Delivery, QueueMessage } from './lease.ts'
import { Lease, MAX_LEASE_SECONDS, receiveMessages } from './lease.ts'

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

/** The context of a message that a handler works on. */
export interface Work<T = unknown> extends QueueMessage<T> {
  /** Aborts when the lease is lost, or when a drain runs out of time: stop then, another worker gets the message. */
  readonly signal: AbortSignal
}

export type WorkHandler<T> = (data: T, work: Work<T>) => unknown

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
        if (this.#stop.signal.aborted) await this.#returnDeliveries(deliveries)
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
  async #returnDeliveries(deliveries: readonly Delivery[]): Promise<void> {
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

export interface WorkItemOptions<T> {
  readonly transport: Transport
  readonly leaseMs: number
  readonly delayMs: (receives: number) => number
  readonly decode: Decode<T>
  readonly handler: WorkHandler<T>
  readonly onError: ErrorListener
}

/** A message that a handler works on: its lease is renewed, and it is settled with the handler's result. */
export class WorkItem<T> {
  /** Resolves when the message was returned to its queue before the handler ended. */
  readonly released: Promise<void>
  readonly #delivery: Delivery
  readonly #options: WorkItemOptions<T>
  readonly #lease: Lease
  readonly #lost = new AbortController()
  readonly #over = new AbortController()
  readonly #returned = new AbortController()

  constructor(delivery: Delivery, options: WorkItemOptions<T>) {
    this.#delivery = delivery
    this.#options = options
    this.#lease = new Lease(options.transport, delivery.receipt)
    this.released = new Promise((resolve) => {
      this.#returned.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** Returns `true` if another delivery may be of the same message: senders need not give each message its own id. */
  resembles({ message }: Delivery): boolean {
    return this.#delivery.message.id === message.id && this.#delivery.message.source === message.source
  }

  /**
   * Renews the lease at once. Aborts the handler's signal if it is lost: a server that was killed has forgotten its
   * leases, and delivers again what is still worked on. Never rejects.
   * @returns `true` if the lease is lost
   */
  async isLost(): Promise<boolean> {
    if (this.#lost.signal.aborted) return true
    const leased = await this.#lease.extend(this.#options.leaseMs).catch(() => false)
    if (!leased && !this.#over.signal.aborted) this.#lose()
    return !leased
  }

  #lose(): void {
    if (this.#lost.signal.aborted) return
    const error = leaseLost(this.#delivery.message.id)
    this.#lost.abort(error)
    this.#report(error)
  }

  /**
   * Runs the handler and settles the message. Never rejects.
   * @param before The handler starts when this promise has resolved
   */
  async run(before?: Promise<void>): Promise<void> {
    const { decode, handler } = this.#options
    const { message, receives } = this.#delivery
    const renewing = this.#renew()
    let failure: { readonly error: unknown } | undefined
    try {
      await before
      this.#lost.signal.throwIfAborted()
      const data = await decode(message.data)
      await handler(data, { ...message, data, receives, signal: this.#lost.signal })
    } catch (error) {
      failure = { error }
    }
    this.#over.abort()
    await renewing
    if (this.#lost.signal.aborted) {
      // After the lease is lost, the handler usually throws the reason of its signal, which was reported.
      if (failure !== undefined && failure.error !== this.#lost.signal.reason) this.#report(failure.error)
      return
    }
    try {
      if (failure === undefined) {
        if (!(await this.#lease.ack())) throw leaseLost(message.id)
        return
      }
      this.#report(failure.error)
      await this.#lease.nack(this.#options.delayMs(receives))
    } catch (error) {
      this.#report(error)
    }
  }

  /** Aborts the handler's signal, and returns the message to its queue. Never rejects. */
  async release(): Promise<void> {
    if (this.#lost.signal.aborted) {
      this.#returned.abort()
      return
    }
    this.#lost.abort(new SignalboxError('CLOSED', 'the worker pool was drained before the handler ended'))
    this.#over.abort()
    await this.#lease.nack(0).catch((error: unknown) => this.#report(error))
    this.#returned.abort()
  }

  /** Renews the lease until the handler has ended. Aborts the handler's signal if the lease is lost. */
  async #renew(): Promise<void> {
    const { leaseMs } = this.#options
    const over = this.#over.signal
    let end = Date.now() + leaseMs
    while (!over.aborted) {
      await pause(leaseMs / 3, over)
      if (over.aborted) return
      const asked = Date.now()
      try {
        const signal = AbortSignal.any([over, AbortSignal.timeout(Math.max(0, end - asked))])
        end = (await this.#lease.extend(leaseMs, signal)) ? asked + leaseMs : 0
      } catch (error) {
        if (over.aborted) return
        this.#report(error)
      }
      if (Date.now() < end) continue
      this.#lose()
      return
    }
  }

  #report(error: unknown): void {
    this.#options.onError(error)
  }
}

function leaseLost(id: string): SignalboxError {
  return new SignalboxError(
    'LEASE_LOST',
    `the lease of message ${id} ended before it was settled; it is delivered again`,
  )
}
