import { SignalboxError } from '../errors.ts'
import { pause } from '../pause.ts'
import type { ErrorListener } from '../report.ts'
import type { Decode } from '../schema.ts'
import type { Transport } from '../transport.ts'
import { Lease } from './leased-message.ts'
import type { Delivery } from './receive.ts'
import type { WorkHandler } from './work.ts'

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
      // After the loss, errors of the handler are usually that of its signal.
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
