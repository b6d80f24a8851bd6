import { createInbox } from '@nats-io/transport-node'

import type { Connection } from './connection.ts'
import type { Interest } from './large/large-messages.ts'
import type { Received } from './large/thread-calls.ts'

interface PullOptions {
  readonly batch: number
  /**
   * The time for which the server keeps the request, in milliseconds; 0 does not wait. The request ends with
   * its first messages.
   */
  readonly waitMs: number
  /** The maximum number of bytes that the server delivers. */
  readonly maxBytes?: number | undefined
}

/**
 * The end of a pull: `done` the batch is complete, or the time is over · `large` the next message exceeds
 * maxBytes · `gone` the consumer does not exist · `lost` the servers are silent, or the connection was lost.
 */
export type PullEnd = 'done' | 'large' | 'gone' | 'lost'

/**
 * The bytes that the servers may deliver at once to all pulls on each connection, without those that use
 * {@link Connection.withSpace}. Every new pull may use half of the rest, and this minimum in any case. A server that copies
 * 16 MB of large messages at a time delays its answers to everyone by a tenth of a second.
 */
const PULL_BYTES = { small: 16 * 1024 * 1024, large: 4 * 1024 * 1024 }
const MIN_BYTES = 128 * 1024
/** The most bytes of one pull on the connection for small messages, which wait behind them. */
const SMALL_BYTES = 1024 * 1024
/** The time after which a pull counts as waiting: the servers had nothing to deliver. */
const FRESH_MS = 50
const HEARTBEAT_MS = 5_000
const SLACK_MS = 2_000
/** The time for which messages of a lost pull are still accepted. */
const STRAY_MS = 60_000
const NANOS = 1_000_000

/**
 * A running pull with its own subscription: messages arrive under the subjects under which they were stored.
 */
interface Pull {
  /** A part of the reply subject that only the messages of this consumer have. */
  readonly origin: string
  left: number
  readonly onMessage: (message: Received) => void
  readonly end: (how: PullEnd) => void
  readonly silenceMs: number
  timer: NodeJS.Timeout | undefined
}

interface Slot {
  readonly inbox: string
  /** `true` on the connection for large messages. */
  readonly isLarge: boolean
  readonly subscription: Interest
  pull: Pull | undefined
}

/** Requests for messages of pull consumers. */
export class Pulls {
  readonly #connection: Connection
  /** The slots without a pull, on the connection for small and on that for large messages. */
  readonly #free = { small: new Array<Slot>(), large: new Array<Slot>() }
  readonly #slots = new Set<Slot>()
  readonly #promisedBytes = { small: 0, large: 0 }
  #closed = false

  constructor(connection: Connection) {
    this.#connection = connection
    connection.onReconnect(() => this.#lose(false))
    connection.large.onLost(() => {
      for (const slot of this.#free.large.splice(0)) this.#drop(slot)
      this.#lose(true)
    })
  }

  #lose(isLarge: boolean): void {
    for (const slot of this.#slots) if (slot.isLarge === isLarge) slot.pull?.end('lost')
  }

  /**
   * Requests messages. Calls `onMessage` for each as it arrives, even after the pull ended as `lost`. May end with fewer
   * messages than there are. After a close it ends as `gone`.
   */
  async pull(
    stream: string,
    consumer: string,
    { batch, waitMs, maxBytes = Infinity }: PullOptions,
    onMessage: (message: Received) => void,
  ): Promise<PullEnd> {
    const until = Date.now() + waitMs
    let arrived = 0
    const arrive = (message: Received): void => {
      arrived++
      onMessage(message)
    }
    for (let left = waitMs; ; left = Math.max(0, until - Date.now())) {
      const { large } = this.#connection
      const isLarge = large.receives(stream)
      const share = this.#share(isLarge ? 'large' : 'small')
      const bytes = Math.min(maxBytes, isLarge ? share.bytes : Math.min(share.bytes, SMALL_BYTES))
      const end = await this.#request(stream, consumer, { batch, waitMs: left, maxBytes: bytes }, arrive, isLarge)
      share.release()
      if (end !== 'large' || bytes === maxBytes) return end
      if (arrived > 0) return 'done'
      if (!isLarge) large.expectFrom(stream)
      if (!isLarge && large.receives(stream)) continue
      const one = await this.#requestLarge(stream, consumer, maxBytes, arrive)
      if (one !== 'done' || arrived > 0 || left === 0) return one
    }
  }

  /** Returns the bytes that the servers may deliver at once to a new pull. */
  #share(size: 'small' | 'large'): { readonly bytes: number; readonly release: () => void } {
    const promised = this.#promisedBytes
    const bytes = Math.max(MIN_BYTES, Math.floor((PULL_BYTES[size] - promised[size]) / 2))
    promised[size] += bytes
    let held = bytes
    const release = (): void => {
      clearTimeout(timer)
      promised[size] -= held
      held = 0
    }
    const timer = setTimeout(release, FRESH_MS).unref()
    return { bytes, release }
  }

  /** Requests the next message if there is one, of any size up to `maxBytes`. */
  async #requestLarge(
    stream: string,
    consumer: string,
    maxBytes: number,
    onMessage: (message: Received) => void,
  ): Promise<PullEnd> {
    const options = { batch: 1, waitMs: 0, maxBytes: maxBytes === Infinity ? undefined : maxBytes }
    try {
      return await this.#connection.withSpace(stream, () => {
        const isLarge = this.#connection.large.receives(stream)
        return this.#request(stream, consumer, options, onMessage, isLarge)
      })
    } catch {
      return 'lost'
    }
  }

  #request(
    stream: string,
    consumer: string,
    options: PullOptions,
    onMessage: (message: Received) => void,
    isLarge: boolean,
  ): Promise<PullEnd> {
    if (this.#closed) return Promise.resolve('gone')
    const { promise, resolve } = Promise.withResolvers<PullEnd>()
    const { batch, waitMs, maxBytes } = options
    const heartbeat = waitMs >= 2 * HEARTBEAT_MS
    let slot: Slot
    try {
      slot = this.#freeOf(isLarge).pop() ?? this.#open(isLarge)
    } catch {
      return Promise.resolve('lost')
    }
    const pull: Pull = {
      origin: `.${stream}.${consumer}.`,
      left: batch,
      onMessage,
      silenceMs: heartbeat ? 2 * HEARTBEAT_MS + SLACK_MS : waitMs + SLACK_MS,
      timer: undefined,
      end: (how) => {
        clearTimeout(pull.timer)
        resolve(how)
        if (how === 'lost') pull.timer = setTimeout(() => this.#drop(slot), STRAY_MS).unref()
        else if (slot.pull === pull) {
          slot.pull = undefined
          this.#freeOf(isLarge).push(slot)
        }
      },
    }
    slot.pull = pull
    this.#watch(pull)
    const request = {
      batch,
      no_wait: true,
      expires: waitMs > 0 ? Math.round(waitMs) * NANOS : undefined,
      idle_heartbeat: heartbeat ? HEARTBEAT_MS * NANOS : undefined,
      max_bytes: maxBytes,
    }
    try {
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
      const { nc, large } = this.#connection
      if (isLarge) large.publish(subject, JSON.stringify(request), slot.inbox)
      else nc.publish(subject, JSON.stringify(request), { reply: slot.inbox })
    } catch {
      pull.end('lost')
    }
    return promise
  }

  #freeOf(isLarge: boolean): Slot[] {
    return isLarge ? this.#free.large : this.#free.small
  }

  #open(isLarge: boolean): Slot {
    const inbox = createInbox()
    const receive = (message: Received): void => this.#receive(slot, message)
    const subscription = isLarge
      ? this.#connection.listenLarge(inbox, receive)
      : this.#connection.listen(inbox, receive)
    const slot: Slot = { inbox, isLarge, pull: undefined, subscription }
    this.#slots.add(slot)
    return slot
  }

  #drop(slot: Slot): void {
    slot.subscription.unsubscribe()
    this.#slots.delete(slot)
  }

  #watch(pull: Pull): void {
    clearTimeout(pull.timer)
    pull.timer = setTimeout(() => pull.end('lost'), pull.silenceMs).unref()
  }

  #receive({ pull }: Slot, message: Received): void {
    const { reply = '' } = message
    if (reply.startsWith('$JS.ACK.')) {
      if (!pull || !reply.includes(pull.origin)) return this.#receiveStray(message, reply)
      pull.left--
      pull.onMessage(message)
      if (pull.left <= 0) pull.end('done')
      else this.#watch(pull)
      return
    }
    if (!pull) return
    const code = message.headers?.code
    const description = message.headers?.description ?? ''
    if (code === 100) this.#watch(pull)
    else if (code === 503) pull.end('gone')
    else if (code !== 409) pull.end('done')
    else if (/MaxBytes/i.test(description)) pull.end('large')
    else pull.end(/deleted/i.test(description) ? 'gone' : 'lost')
  }

  /**
   * Handles a message that an earlier pull of this subscription requested: a frozen server answers requests
   * when it resumes. Passes it to the current pull of its consumer; without one, rejects it (nack).
   */
  #receiveStray(message: Received, reply: string): void {
    for (const { pull } of this.#slots) {
      if (!pull || !reply.includes(pull.origin)) continue
      pull.onMessage(message)
      return pull.end('done')
    }
    this.#connection.nc.publish(reply, NAK)
  }

  /**
   * Ends all pulls. Resolves when no message can arrive any more. Until then the pulls pass on the messages that the servers
   * had already sent, so that the node can return them.
   */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#connection.connected) {
      await Promise.allSettled(Array.from(this.#slots, ({ subscription }) => subscription.drain()))
    }
    for (const slot of this.#slots) {
      slot.pull?.end('gone')
      clearTimeout(slot.pull?.timer)
      this.#drop(slot)
    }
    this.#free.small.length = 0
    this.#free.large.length = 0
  }
}

/** The values that the servers put into the subject that acknowledges a delivery. */
export interface AckSubject {
  /** The number of deliveries of the message, including this one. */
  readonly deliveries: number
  readonly sequence: number
  /** The number of this delivery among all deliveries of the consumer; unique. */
  readonly delivery: number
  /** The time when the message was stored, in milliseconds since the epoch. */
  readonly timestamp: number
  /** The number of messages that the consumer has still to deliver. */
  readonly pending: number
}

/**
 * Parses `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<delivery>.<nanoseconds>.<pending>`, also with
 * domain and account before the stream.
 */
export function parseAckSubject(subject: string): AckSubject | undefined {
  const tokens = subject.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return undefined
  const from = tokens.length > 9 ? 6 : 4
  const [deliveries, sequence, delivery, nanoseconds = '', pending] = tokens.slice(from)
  return {
    deliveries: Number(deliveries),
    sequence: Number(sequence),
    delivery: Number(delivery),
    timestamp: Number(nanoseconds.slice(0, -6)),
    pending: Number(pending),
  }
}

/** Returns a subject that settles a delivery whose original subject is unknown. */
export function ackSubject(stream: string, consumer: string, sequence: number, delivery = 1): string {
  return `$JS.ACK.${stream}.${consumer}.1.${sequence}.${delivery}.0.0`
}

export const ACK = '+ACK'
export const NAK = '-NAK'

/** Returns the payload that makes a message visible again after this delay. */
export function nakAfter(milliseconds: number): string {
  return `-NAK {"delay":${Math.max(1, Math.round(milliseconds)) * 1_000_000}}`
}
