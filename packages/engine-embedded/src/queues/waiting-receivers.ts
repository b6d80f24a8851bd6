import type { QueueDelivery, ReceiveOptions } from '@signalbox/broker-core/engine'
import { MAX_TIMER_MS, tickWork } from '@signalbox/broker-core/internal'

import type { ChannelRegistry } from '../channel-registry.ts'
import type { Queue, Waiter } from './queue.ts'

/** The receivers that wait on queues, and the delivery of new messages to them. */
export class WaitingReceivers {
  readonly #registry: ChannelRegistry
  /** Queues that may have messages for waiting receivers after all results of a group are applied. */
  #toServe = new Set<Queue>()

  constructor(registry: ChannelRegistry) {
    this.#registry = registry
  }

  /** Waits for messages; resolves with an empty list after the time-out. */
  wait(queue: Queue, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    const { signal, waitMs } = options
    const { promise, resolve, reject } = Promise.withResolvers<readonly QueueDelivery[]>()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      entry.remove()
      this.#count(queue)
    }
    const waiter: Waiter = {
      options,
      resolve: (deliveries) => {
        end()
        // One commit can have messages for many receivers: their answers share no long tick.
        if (deliveries.length > 0) tickWork.soon(() => resolve(deliveries))
        else resolve(deliveries)
      },
      reject: (error) => {
        end()
        reject(error)
      },
    }
    const onAbort = (): void => waiter.reject(signal?.reason)
    // Not unref'd: a caller awaits it, and its time is bounded.
    const timer = setTimeout(() => waiter.resolve([]), Math.min(waitMs, MAX_TIMER_MS))
    signal?.addEventListener('abort', onAbort)
    const entry = queue.waiters.add(waiter)
    this.#count(queue)
    return promise
  }

  #count({ channel, waiters }: Queue): void {
    if (!channel) return
    channel.subscribers = waiters.size
    this.#registry.touch(channel)
  }

  /** Serves the receivers in the order of their calls, after all results of a group were applied. */
  serveSoon(queue: Queue): void {
    if (queue.waiters.size === 0) return
    if (this.#toServe.size === 0) queueMicrotask(() => this.#serveAll())
    this.#toServe.add(queue)
  }

  #serveAll(): void {
    const queues = this.#toServe
    this.#toServe = new Set()
    for (const queue of queues) serve(queue)
  }
}

function serve(queue: Queue): void {
  // A receiver that was served, or that failed, leaves the set.
  for (let waiter = queue.waiters.first; waiter; waiter = queue.waiters.first) {
    try {
      const leases = queue.take(waiter.options)
      if (leases.length === 0) {
        if (queue.searching) setImmediate(() => serve(queue))
        return
      }
      waiter.resolve(queue.deliver(leases))
    } catch (error) {
      waiter.reject(error)
    }
  }
}
