import { callSignal } from '../client-context.ts'
import { isObject } from '../cloud-event.ts'
import { argumentError } from '../errors.ts'
import { callCe } from '../http-calls.ts'
import type { MessageOptions, Stored } from '../send.ts'
import { storeMessage } from '../send.ts'
import type { Duration } from '../time.ts'
import { milliseconds, wholeSeconds } from '../time.ts'
import type { TypedChannel } from '../typed-channel.ts'
import type { WorkerPool, WorkOptions } from '../work/worker-pool.ts'
import type { Delivery, LeasedMessage, QueueMessage } from './lease.ts'
import { Lease, MAX_LEASE_SECONDS, receiveMessages } from './lease.ts'
import type { WorkHandler } from './worker.ts'
import { workOnQueue } from './worker.ts'

export interface QueueSendOptions extends MessageOptions {
  /** The time until the message can be received, in whole seconds. @default 0 */
  readonly delay?: Duration | undefined
  /** The time after which an unreceived message is removed, in whole seconds; 0 means never. @default 0 */
  readonly expires?: Duration | undefined
  /** The number of receives after which the message moves to `deadLetter`, which is required. */
  readonly maxReceives?: number | undefined
  /** The queue that the message moves to after `maxReceives`, or after a reject. */
  readonly deadLetter?: string | undefined
}

export interface ReceiveOptions {
  /** The most messages, 1 to 1,000. @default 1 */
  readonly max?: number | undefined
  /** The lease of the messages, 1 s to 12 h. @default '30s' */
  readonly lease?: Duration | undefined
  /** The longest time to wait for a first message, at most 60 s. @default '5s' */
  readonly wait?: Duration | undefined
  readonly signal?: AbortSignal | undefined
}

/** The longest delay, in seconds. */
const MAX_SECONDS = 1_000_000_000_000

/** A queue: each message goes to one receiver. */
export class Queue<Output = unknown, Input = Output> {
  readonly #channel: TypedChannel<Output, Input>

  /** @internal */
  constructor(channel: TypedChannel<Output, Input>) {
    this.#channel = channel
  }

  /** Stores a message durably. Repeated by the client until the server has certainly stored it once. */
  async send(data: Input, options: QueueSendOptions = {}): Promise<Stored> {
    const { delay = 0, expires = 0, maxReceives, deadLetter } = options
    if (maxReceives !== undefined && deadLetter === undefined) {
      throw argumentError('deadLetter', deadLetter, 'given together with maxReceives')
    }
    await this.#channel.check(data)
    const target = {
      channel: this.#channel.name,
      path: '/ce/queue/send',
      settings: {
        delay_seconds: wholeSeconds('delay', delay, 0, MAX_SECONDS),
        expiration_seconds: wholeSeconds('expires', expires, 0, MAX_SECONDS),
        max_receive_count: maxReceives,
        dead_letter_queue: deadLetter,
      },
    } as const
    return storeMessage(this.#channel.context, target, data, options)
  }

  /** Works on the messages: leases, renews, acknowledges after the handler, and rejects if it throws. */
  work(handler: WorkHandler<Output>): WorkerPool
  work(options: WorkOptions, handler: WorkHandler<Output>): WorkerPool
  work(first: WorkOptions | WorkHandler<Output>, second?: WorkHandler<Output>): WorkerPool {
    const [options, handler] = typeof first === 'function' ? [{}, first] : [first, second]
    if (handler === undefined) throw argumentError('handler', handler, 'a function')
    return workOnQueue(this.#channel.context, this.#channel.name, this.#channel.decode, options, handler)
  }

  /**
   * Receives up to `max` messages, once, and yields them. Settle each one: leaving the loop returns the messages that
   * were not yielded to the queue. Use {@link Queue.work} to receive for as long as the program runs.
   */
  async *receive(options: ReceiveOptions = {}): AsyncGenerator<LeasedMessage<Output>, void, void> {
    const { max = 1, lease = '30s', wait = '5s', signal } = options
    const left = [
      ...(await receiveMessages(this.#channel.context, {
        channel: this.#channel.name,
        max,
        waitSeconds: wholeSeconds('wait', wait, 0, 60),
        leaseSeconds: wholeSeconds('lease', lease, 1, MAX_LEASE_SECONDS),
        signal,
      })),
    ]
    try {
      for (let next = left[0]; next !== undefined; next = left[0]) {
        const message = await this.#leased(next)
        left.shift()
        yield message
      }
    } finally {
      await Promise.all(left.map(({ receipt }) => new Lease(this.#channel.context.transport, receipt).nack(0)))
    }
  }

  /** Returns the next messages without receiving them. */
  async peek(options: { readonly max?: number; readonly signal?: AbortSignal } = {}): Promise<readonly QueueMessage[]> {
    const { max = 1, signal } = options
    const call = { channel: this.#channel.name, max, waitSeconds: 0, leaseSeconds: undefined, signal }
    const deliveries = await receiveMessages(this.#channel.context, call)
    return deliveries.map(({ message, receives }) => Object.assign(message, { receives }))
  }

  /** Removes every message that is not leased. Returns their number. */
  async purge(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<number> {
    const { data } = await callCe(this.#channel.context.transport, {
      method: 'POST',
      path: '/ce/queue/ack_all',
      query: { channel: this.#channel.name },
      repeatable: true,
      signal: callSignal(this.#channel.context, options.signal),
    })
    return isObject(data) ? Number(data['count']) : 0
  }

  async #leased({ message, receives, receipt }: Delivery): Promise<LeasedMessage<Output>> {
    const lease = new Lease(this.#channel.context.transport, receipt)
    return {
      ...message,
      data: await this.#channel.decode(message.data),
      receives,
      ack: () => lease.ack(),
      nack: ({ delay, pauseQueue = false } = {}) => {
        const delayMs = delay === undefined ? undefined : milliseconds('delay', delay)
        return pauseQueue ? lease.pause(this.#channel.name, delayMs ?? 0) : lease.nack(delayMs)
      },
      reject: () => lease.reject(),
      extend: (duration) => lease.extend(milliseconds('lease', duration)),
    }
  }
}
