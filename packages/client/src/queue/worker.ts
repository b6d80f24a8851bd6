import type { ClientContext, ErrorListener } from '../client-context.ts'
import type { TraceContext } from '../cloud-event.ts'
import { SignalboxError } from '../errors.ts'
import type { Duration } from '../time.ts'
import { milliseconds, pause, wholeSeconds } from '../time.ts'
import type { Transport } from '../transport.ts'
import type { Decode } from '../typed-channel.ts'
import type { PoolItem, WorkOptions } from '../work/worker-pool.ts'
import { delayOf, WorkerPool } from '../work/worker-pool.ts'
import type { Delivery, QueueMessage } from './lease.ts'
import { Lease, MAX_LEASE_SECONDS, MAX_PAUSE_SECONDS, receiveMessages } from './lease.ts'

/** The context of a message that a handler works on. */
export interface Work<T = unknown> extends QueueMessage<T> {
  /** Aborts when the lease is lost, or when a drain runs out of time: stop then, another worker gets the message. */
  readonly signal: AbortSignal
  /**
   * Moves the message to its dead-letter queue now, because no attempt can succeed. The outcome of the handler then has
   * no effect.
   * @throws SignalboxError NO_DEAD_LETTER_QUEUE, LEASE_LOST
   */
  reject(): Promise<void>
  /**
   * Pauses the queue for all its workers, because a service that the handler calls is busy. The message returns when the
   * pause ends, also if the handler throws: `if (answer.status === 429) return work.pause(retryAfter(answer) ?? '30s')`.
   * @param time Below 1 s it is 1 s, and above 1 h it is 1 h
   */
  pause(time: Duration): void
}

export type WorkHandler<T> = (data: T, work: Work<T>) => unknown

/** Seconds that an empty queue is asked for. */
const WAIT_SECONDS = 20

/** Starts workers on a queue. */
export function workOnQueue<T>(
  context: ClientContext,
  channel: string,
  decode: Decode<T>,
  options: WorkOptions,
  handler: WorkHandler<T>,
): WorkerPool {
  const { transport } = context
  const { lease = '30s', onError = context.onError } = options
  const leaseSeconds = wholeSeconds('lease', lease, 1, MAX_LEASE_SECONDS)
  const delayMs = options.backoff === 'queue' ? () => undefined : delayOf(options.backoff, MAX_LEASE_SECONDS)
  const item = { transport, channel, leaseMs: leaseSeconds * 1000, delayMs, decode, handler, onError }
  return new WorkerPool(context, options, async (max, signal) => {
    const call = { channel, max, waitSeconds: WAIT_SECONDS, leaseSeconds, signal }
    const deliveries = await receiveMessages(context, call)
    return deliveries.map((delivery) => new WorkItem<T>(delivery, item))
  })
}

interface WorkItemOptions<T> {
  readonly transport: Transport
  readonly channel: string
  readonly leaseMs: number
  readonly delayMs: (receives: number) => number | undefined
  readonly decode: Decode<T>
  readonly handler: WorkHandler<T>
  readonly onError: ErrorListener
}

/** A message that a handler works on: its lease is renewed, and it is settled with the handler's result. */
class WorkItem<T> implements PoolItem {
  readonly key: string
  readonly trace: TraceContext | undefined
  readonly released: Promise<void>
  readonly #delivery: Delivery
  readonly #options: WorkItemOptions<T>
  readonly #lease: Lease
  readonly #lost = new AbortController()
  readonly #over = new AbortController()
  readonly #returned = new AbortController()
  /** Resolves when a rejection by the handler has ended, if there is one. */
  #rejecting: Promise<void> | undefined
  #rejected = false
  /** The pause that the handler wants, in ms. */
  #pauseMs: number | undefined

  constructor(delivery: Delivery, options: WorkItemOptions<T>) {
    const { id, source, trace } = delivery.message
    this.key = JSON.stringify([source, id])
    this.trace = trace
    this.#delivery = delivery
    this.#options = options
    this.#lease = new Lease(options.transport, delivery.receipt)
    this.released = new Promise((resolve) => {
      this.#returned.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** A server that was killed has forgotten its leases, and delivers again what is still worked on. */
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

  async run(before?: Promise<void>): Promise<void> {
    const { decode, handler } = this.#options
    const { message, receives } = this.#delivery
    const renewing = this.#renew()
    let failure: { readonly error: unknown } | undefined
    try {
      await before
      this.#lost.signal.throwIfAborted()
      const data = await decode(message.data)
      const pauseQueue = (time: Duration): void => {
        this.#pauseMs = Math.min(Math.max(milliseconds('time', time), 1_000), MAX_PAUSE_SECONDS * 1000)
      }
      await handler(data, {
        ...message,
        data,
        receives,
        signal: this.#lost.signal,
        reject: () => this.#reject(),
        pause: pauseQueue,
      })
    } catch (error) {
      failure = { error }
    }
    await this.#rejecting
    this.#over.abort()
    await renewing
    if (this.#lost.signal.aborted) {
      // After the lease is lost, the handler usually throws the reason of its signal, which was reported.
      if (failure !== undefined && failure.error !== this.#lost.signal.reason) this.#report(failure.error)
      return
    }
    if (this.#rejected) {
      if (failure !== undefined) this.#report(failure.error)
      return
    }
    try {
      if (this.#pauseMs !== undefined) {
        if (failure !== undefined) this.#report(failure.error)
        await this.#lease.pause(this.#options.channel, this.#pauseMs)
        return
      }
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

  #reject(): Promise<void> {
    const rejection = this.#moveToDeadLetters()
    this.#rejecting = rejection.catch(() => {})
    return rejection
  }

  async #moveToDeadLetters(): Promise<void> {
    if (!(await this.#lease.reject())) throw leaseLost(this.#delivery.message.id)
    this.#rejected = true
    this.#over.abort()
  }

  async release(): Promise<void> {
    await this.#rejecting
    if (!this.#lost.signal.aborted) {
      this.#lost.abort(new SignalboxError('CLOSED', 'the worker pool was drained before the handler ended'))
      this.#over.abort()
      if (!this.#rejected) await this.#lease.nack(0).catch((error: unknown) => this.#report(error))
    }
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
      await this.#rejecting
      if (over.aborted) return
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
