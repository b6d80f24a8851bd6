import { setTimeout as sleep } from 'node:timers/promises'

import type { NackOptions, SettleResult } from '../engine/queue-engine.ts'
import { isBrokerError, messageOf } from '../errors.ts'
import { assertInteger } from '../handle/access.ts'
import { MAX_TIMER_MS, pauseAfter } from '../keyed-log/retry.ts'
import type { QueueDelivery } from '../message.ts'
import type { OptionTypes } from '../options.ts'
import { assertFunction, checkOptions } from '../options.ts'
import type { Duration, WorkHandler, WorkOptions } from './work.ts'
import { durationMs, LeaseLost, workMessage } from './work.ts'

/** The calls on a queue that a pool needs. */
interface WorkedQueue extends LeaseCalls {
  hasRetryPolicy(): boolean
  receive(input: {
    readonly maxMessages: number
    readonly waitMs: number
    readonly leaseMs: number
    readonly signal: AbortSignal
  }): Promise<readonly QueueDelivery[]>
}

const OPTION_TYPES: OptionTypes<WorkOptions> = {
  concurrency: 'number',
  lease: 'any',
  backoff: 'function',
  drainTimeout: 'any',
  signal: 'object',
  onError: 'function',
}

const MAX_LEASE_MS = 43_200_000

/** Time that one receive waits, in ms. */
const WAIT_MS = 20_000

/** Workers on a queue. They run until they are drained. */
export class WorkerPool implements AsyncDisposable {
  /** Resolves when the pool has ended; rejects with an error that no other attempt can cure, such as FORBIDDEN. */
  readonly closed: Promise<void>
  readonly #queue: WorkedQueue
  readonly #concurrency: number
  readonly #work: LeasedWorkOptions
  readonly #drainTimeout: Duration
  readonly #stop = new AbortController()
  readonly #running = new Map<LeasedWork, Promise<void>>()

  /** @internal */
  constructor(queue: WorkedQueue, options: WorkOptions, handler: WorkHandler | undefined) {
    checkOptions('queues.work', options, OPTION_TYPES)
    assertFunction('handler', handler)
    const { concurrency = 1, lease = '30s', backoff, drainTimeout = '25s', signal } = options
    assertInteger('concurrency', concurrency, 1, 1000)
    durationMs('drainTimeout', drainTimeout, 0, MAX_TIMER_MS)
    this.#queue = queue
    this.#concurrency = concurrency
    this.#drainTimeout = drainTimeout
    this.#work = {
      leases: queue,
      leaseMs: durationMs('lease', lease, 100, MAX_LEASE_MS),
      delayMs: (receives) => {
        if (backoff !== undefined) return durationMs('backoff', backoff(receives), 0, MAX_LEASE_MS)
        return queue.hasRetryPolicy() ? undefined : standardDelay(receives)
      },
      handler,
      onError: options.onError ?? reportError,
    }
    const drain = (): void => void this.drain()
    signal?.addEventListener('abort', drain, { once: true })
    if (signal?.aborted === true) this.#stop.abort()
    this.closed = this.#run().finally(() => signal?.removeEventListener('abort', drain))
    // The error is reported as well, so a caller need not wait for the promise.
    this.closed.catch(this.#work.onError)
  }

  /** The number of messages that handlers work on. */
  get active(): number {
    return this.#running.size
  }

  /**
   * Receives no more messages, and waits for the handlers. After the time-out their signals abort, and their messages
   * return to the queue. Idempotent.
   * @param timeout The longest time to wait. Default: `drainTimeout`
   * @returns The number of messages that were returned to the queue
   */
  async drain(timeout: Duration = this.#drainTimeout): Promise<number> {
    const timeoutMs = durationMs('timeout', timeout, 0, MAX_TIMER_MS)
    this.#stop.abort()
    const idle = this.closed.catch(() => {})
    const over = new AbortController()
    await Promise.race([idle, sleep(timeoutMs, undefined, { signal: over.signal }).catch(() => {})])
    over.abort()
    const left = [...this.#running.keys()]
    await Promise.all(left.map((work) => work.giveUp()))
    await idle
    return left.length
  }

  /** Drains the pool. */
  async close(): Promise<void> {
    await this.drain()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const free = this.#concurrency - this.#running.size
      if (free === 0) {
        await Promise.race(this.#running.values())
        continue
      }
      try {
        const deliveries = await this.#queue.receive({
          maxMessages: free,
          waitMs: WAIT_MS,
          leaseMs: this.#work.leaseMs,
          signal,
        })
        await this.#start(deliveries)
      } catch (error) {
        if (signal.aborted) break
        if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
        this.#work.onError(error)
        await pauseAfter(1, { signal })
      }
    }
    await Promise.all(this.#running.values())
  }

  /** Starts the handlers; returns the messages that arrived while the pool was drained. */
  async #start(deliveries: readonly QueueDelivery[]): Promise<void> {
    if (this.#stop.signal.aborted) {
      if (deliveries.length > 0) {
        const receipts = deliveries.map(({ receipt }) => receipt)
        await this.#queue.nack(receipts, { delayMs: 0 })
      }
      return
    }
    for (const delivery of deliveries) {
      const work = new LeasedWork(delivery, this.#work)
      // The handler counts as active before it runs.
      const done = Promise.resolve()
        .then(() => work.run())
        .finally(() => this.#running.delete(work))
      this.#running.set(work, done)
    }
  }
}

function standardDelay(receives: number): number {
  return Math.min(300_000, 1000 * 2 ** (Math.min(receives, 20) - 1))
}

function reportError(error: unknown): void {
  const line = messageOf(error)
    .split('\n')
    .map((part) => part.trim())
    .join(' | ')
  process.stderr.write(`signalbox: queues.work: ${line}\n`)
}

/** The calls that settle messages, for one caller. */
interface LeaseCalls {
  ack(receipts: readonly string[]): Promise<SettleResult>
  nack(receipts: readonly string[], options: NackOptions): Promise<SettleResult>
  extend(receipts: readonly string[], leaseMs: number): Promise<SettleResult>
}

interface LeasedWorkOptions {
  readonly leases: LeaseCalls
  readonly leaseMs: number
  /** Returns the delay of a failed message; undefined leaves it to the queue's retry policy. */
  readonly delayMs: (receives: number) => number | undefined
  readonly handler: WorkHandler
  readonly onError: (error: unknown) => void
}

/** One leased message under way: runs the handler, renews the lease meanwhile, and settles the message. */
class LeasedWork {
  readonly #delivery: QueueDelivery
  readonly #options: LeasedWorkOptions
  /** Aborts for the handler. */
  readonly #lost = new AbortController()
  /** Aborts when the lease needs no renewal any more. */
  readonly #settling = new AbortController()
  /** Resolves when a rejection by the handler has ended, if there is one. */
  #rejecting: Promise<void> | undefined
  #rejected = false

  constructor(delivery: QueueDelivery, options: LeasedWorkOptions) {
    this.#delivery = delivery
    this.#options = options
  }

  /** Works on the message. Resolves when the message is settled, or given up. Never rejects. */
  async run(): Promise<void> {
    const gaveUp = new Promise<void>((resolve) => {
      this.#lost.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    // A handler that ignores its signal must not keep the pool from ending.
    await Promise.all([Promise.race([this.#work(), gaveUp]), this.#renew()])
  }

  /** Aborts the handler's signal, and returns the message to its queue; not one that is being settled. Never rejects. */
  async giveUp(): Promise<void> {
    await this.#rejecting
    if (this.#settling.signal.aborted && !this.#rejected) return
    this.#settling.abort()
    this.#lost.abort(new LeaseLost('the pool was drained before the handler ended; the message returned to its queue'))
    if (this.#rejected) return
    await this.#options.leases.nack([this.#delivery.receipt], { delayMs: 0 }).catch(this.#options.onError)
  }

  async #work(): Promise<void> {
    const { handler, onError } = this.#options
    const { message } = this.#delivery
    const { signal } = this.#lost
    let failure: { readonly error: unknown } | undefined
    try {
      await handler(workMessage(message), { receives: message.receiveCount, signal, reject: () => this.#reject() })
    } catch (error) {
      failure = { error }
    }
    await this.#rejecting
    this.#settling.abort()
    // After the loss the handler usually rejects with the reason of its signal, which was reported.
    if (failure !== undefined && failure.error !== signal.reason) onError(failure.error)
    if (signal.aborted || this.#rejected) return
    try {
      await this.#settle(failure === undefined)
    } catch (error) {
      onError(error)
    }
  }

  async #settle(succeeded: boolean): Promise<void> {
    const { leases, delayMs } = this.#options
    const { receipt, message } = this.#delivery
    if (succeeded) {
      const { lost } = await leases.ack([receipt])
      if (lost.length > 0) throw this.#leaseLost()
      return
    }
    await leases.nack([receipt], { delayMs: delayMs(message.receiveCount) })
  }

  #reject(): Promise<void> {
    const rejection = this.#moveToDeadLetters()
    this.#rejecting = rejection.catch(() => {})
    return rejection
  }

  async #moveToDeadLetters(): Promise<void> {
    const { lost } = await this.#options.leases.nack([this.#delivery.receipt], { reject: true })
    if (lost.length > 0) throw this.#leaseLost()
    this.#rejected = true
    this.#settling.abort()
  }

  /** Renews the lease until the handler has ended. Aborts the handler's signal if the lease is lost. */
  async #renew(): Promise<void> {
    const { leases, leaseMs, onError } = this.#options
    const { receipt } = this.#delivery
    const { signal } = this.#settling
    let end = performance.now() + leaseMs
    for (;;) {
      await sleep(leaseMs / 3, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      const asked = performance.now()
      try {
        const { lost } = await leases.extend([receipt], leaseMs)
        end = lost.length > 0 ? 0 : asked + leaseMs
      } catch (error) {
        onError(error)
      }
      await this.#rejecting
      if (signal.aborted) return
      if (performance.now() < end) continue
      const error = this.#leaseLost()
      this.#settling.abort()
      this.#lost.abort(error)
      onError(error)
      return
    }
  }

  #leaseLost(): LeaseLost {
    const { id } = this.#delivery.message
    return new LeaseLost(`the lease of message ${id} ended before it was settled; it is delivered again`)
  }
}
