import { setTimeout as sleep } from 'node:timers/promises'

import type { SettleResult } from '../engine/queue-engine.ts'
import type { QueueDelivery } from '../message.ts'
import type { WorkHandler } from './work.ts'
import { LeaseLost, workMessage } from './work.ts'

/** The calls that settle messages, for one caller. */
export interface LeaseCalls {
  ack(receipts: readonly string[]): Promise<SettleResult>
  nack(receipts: readonly string[]): Promise<SettleResult>
  extend(receipts: readonly string[], leaseMs: number): Promise<SettleResult>
}

export interface LeasedWorkOptions {
  readonly leases: LeaseCalls
  readonly leaseMs: number
  readonly delayMs: (receives: number) => number
  readonly handler: WorkHandler
  readonly onError: (error: unknown) => void
}

/** One leased message under way: runs the handler, renews the lease meanwhile, and settles the message. */
export class LeasedWork {
  readonly #delivery: QueueDelivery
  readonly #options: LeasedWorkOptions
  /** Aborts for the handler. */
  readonly #lost = new AbortController()
  /** Aborts when the lease needs no renewal any more. */
  readonly #settling = new AbortController()

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
    if (this.#settling.signal.aborted) return
    this.#settling.abort()
    this.#lost.abort(new LeaseLost('the pool was drained before the handler ended; the message returned to its queue'))
    await this.#options.leases.nack([this.#delivery.receipt]).catch(this.#options.onError)
  }

  async #work(): Promise<void> {
    const { handler, onError } = this.#options
    const { message } = this.#delivery
    const { signal } = this.#lost
    let failure: { readonly error: unknown } | undefined
    try {
      await handler(workMessage(message), { receives: message.receiveCount, signal })
    } catch (error) {
      failure = { error }
    }
    this.#settling.abort()
    // After the loss the handler usually rejects with the reason of its signal, which was reported.
    if (failure !== undefined && failure.error !== signal.reason) onError(failure.error)
    if (signal.aborted) return
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
    const delay = delayMs(message.receiveCount)
    // The end of a lease returns the message, as a rejection does.
    await (delay === 0 ? leases.nack([receipt]) : leases.extend([receipt], delay))
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
