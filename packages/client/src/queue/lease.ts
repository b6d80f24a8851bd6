import type { ClientContext } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import type { Message } from '../cloud-event.ts'
import { isObject, messageOf, objectOf, asString } from '../cloud-event.ts'
import { callCe } from '../http-calls.ts'
import type { Duration } from '../time.ts'
import { wholeSeconds } from '../time.ts'
import type { Transport } from '../transport.ts'

/** The longest lease and delay, in seconds: twelve hours. */
export const MAX_LEASE_SECONDS = 43_200

/** The longest pause of a queue, in seconds: an hour. */
export const MAX_PAUSE_SECONDS = 3_600

/** A message of a queue. */
export interface QueueMessage<T = unknown> extends Message<T> {
  /** The number of times that the message was received, this time included. */
  readonly receives: number
}

/** A message that this client received, and that no other receiver gets before the lease ends. */
export interface LeasedMessage<T = unknown> extends QueueMessage<T> {
  /** Removes the message. Returns `false` if its lease had ended. */
  ack(): Promise<boolean>
  /**
   * Returns the message to its queue, now or after a delay. Without `delay`, the retry policy of the queue decides, and
   * without a policy it returns now. With `pauseQueue` the queue is paused during the delay, which is 1 s to 1 h then.
   * Returns `false` if its lease had ended.
   */
  nack(options?: NackOptions): Promise<boolean>
  /**
   * Moves the message to its dead-letter queue now, because no attempt can succeed. Returns `false` if its lease had
   * ended.
   * @throws SignalboxError NO_DEAD_LETTER_QUEUE
   */
  reject(): Promise<boolean>
  /** Sets the end of the lease to this time from now. Returns `false` if the lease had ended. */
  extend(lease: Duration): Promise<boolean>
}

export interface NackOptions {
  /** @default that of the retry policy of the queue, else none */
  readonly delay?: Duration | undefined
  /** @default false */
  readonly pauseQueue?: boolean | undefined
}

/** Settles leases by their receipts. */
export class Lease {
  readonly #transport: Transport
  readonly #receipt: string

  constructor(transport: Transport, receipt: string) {
    this.#transport = transport
    this.#receipt = receipt
  }

  ack(): Promise<boolean> {
    return this.#settle('ack', {})
  }

  /** @param delayMs `undefined` leaves the delay to the retry policy of the queue */
  nack(delayMs: number | undefined): Promise<boolean> {
    if (delayMs === undefined) return this.#settle('nack', {})
    return this.#settle('nack', { delay_seconds: wholeSeconds('delay', delayMs, 0, MAX_LEASE_SECONDS) })
  }

  reject(): Promise<boolean> {
    return this.#settle('nack', { reject: true })
  }

  /** Returns the message after a delay, and pauses its queue for that time. */
  async pause(queue: string, delayMs: number): Promise<boolean> {
    return this.#settle('nack', {
      delay_seconds: wholeSeconds('delay', delayMs, 1, MAX_PAUSE_SECONDS),
      pause: queue,
    })
  }

  extend(leaseMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#settle('extend', { visibility_seconds: wholeSeconds('lease', leaseMs, 1, MAX_LEASE_SECONDS) }, signal)
  }

  async #settle(
    action: 'ack' | 'nack' | 'extend',
    query: Readonly<Record<string, number | boolean | string>>,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { data } = await callCe(this.#transport, {
      method: 'POST',
      path: `/ce/queue/${action}`,
      query: { receipt: this.#receipt, ...query },
      repeatable: true,
      signal,
    })
    // A repeat of a settlement that was processed, and whose answer was lost, is answered as the first one.
    return !(isObject(data) && Array.isArray(data['lost']) && data['lost'].length > 0)
  }
}

/** Added to the time that the server waits, in ms: the time-out of the client's own request. */
const MARGIN_MS = 5000

/** One message of an answer of `queue/receive`. */
export interface Delivery {
  readonly message: Message
  readonly receives: number
  readonly receipt: string
}

export interface ReceiveCall {
  readonly channel: string
  readonly max: number
  readonly waitSeconds: number
  /** The lease in seconds; `undefined` to peek. */
  readonly leaseSeconds: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Receives messages with a lease, or peeks. Returns no messages if none came in time. */
export async function receiveMessages(
  context: ClientContext,
  { channel, max, waitSeconds, leaseSeconds, signal }: ReceiveCall,
): Promise<readonly Delivery[]> {
  const { data } = await callCe(context.transport, {
    method: 'POST',
    path: '/ce/queue/receive',
    query: {
      channel,
      max_messages: max,
      wait_timeout: waitSeconds,
      ...(leaseSeconds === undefined ? { is_peek: true } : { visibility_seconds: leaseSeconds }),
    },
    waitMs: waitSeconds * 1000 + MARGIN_MS,
    // A repeat may lease other messages. The messages of the lost answer are redelivered after their lease.
    repeatable: true,
    signal: callSignal(context, signal),
  })
  const list = objectOf(data, 'the answer of queue/receive')['messages']
  return (Array.isArray(list) ? list : []).filter(isObject).map((each) => ({
    message: messageOf(objectOf(each['event'], 'a received event'), channel),
    receives: Number(each['receive_count'] ?? 0),
    receipt: asString(each['receipt']) ?? '',
  }))
}
