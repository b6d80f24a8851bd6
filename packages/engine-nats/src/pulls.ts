import type { Msg, Subscription } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'

import type { Connection } from './connection.ts'
import { NAK } from './queues/ack-subject.ts'

export interface PullOptions {
  readonly batch: number
  /** How long the server keeps the request, in milliseconds; 0 does not wait. It ends as soon as it gave something. */
  readonly waitMs: number
  /** The server stops before this many bytes. */
  readonly maxBytes?: number
}

/**
 * How a pull ended: `done` all it asked for came, or time was over · `large` the next message is over maxBytes ·
 * `gone` there is no such consumer · `lost` the servers are silent or the connection broke.
 */
export type PullEnd = 'done' | 'large' | 'gone' | 'lost'

const HEARTBEAT_MS = 5_000
const SLACK_MS = 2_000
/** How long messages of a pull that was given up are still taken. */
const STRAY_MS = 60_000
const NANOS = 1_000_000

/** A pull under way, in a subscription that it has for itself: messages come under the subject they were stored with. */
interface Pull {
  /** What stands in the reply subject of every message of its consumer, and of no other. */
  readonly origin: string
  left: number
  readonly onMessage: (message: Msg) => void
  readonly end: (how: PullEnd) => void
  readonly silenceMs: number
  timer: NodeJS.Timeout | undefined
}

interface Slot {
  readonly inbox: string
  readonly subscription: Subscription
  pull: Pull | undefined
}

/** Requests for messages of pull consumers. */
export class Pulls {
  readonly #connection: Connection
  readonly #free: Slot[] = []
  readonly #slots = new Set<Slot>()

  constructor(connection: Connection) {
    this.#connection = connection
    connection.onReconnect(() => {
      for (const { pull } of this.#slots) pull?.end('lost')
    })
  }

  /** Messages are handed over as they come, even after the pull was given up as lost. */
  pull(stream: string, consumer: string, options: PullOptions, onMessage: (message: Msg) => void): Promise<PullEnd> {
    const { promise, resolve } = Promise.withResolvers<PullEnd>()
    const { batch, waitMs, maxBytes } = options
    const heartbeat = waitMs >= 2 * HEARTBEAT_MS
    let slot: Slot
    try {
      slot = this.#free.pop() ?? this.#open()
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
          this.#free.push(slot)
        }
      },
    }
    slot.pull = pull
    this.#watch(pull)
    const request = {
      batch,
      no_wait: true,
      ...(waitMs > 0 && { expires: Math.round(waitMs) * NANOS }),
      ...(heartbeat && { idle_heartbeat: HEARTBEAT_MS * NANOS }),
      ...(maxBytes !== undefined && { max_bytes: maxBytes }),
    }
    try {
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
      this.#connection.nc.publish(subject, JSON.stringify(request), { reply: slot.inbox })
    } catch {
      pull.end('lost')
    }
    return promise
  }

  #open(): Slot {
    const inbox = createInbox()
    const slot: Slot = {
      inbox,
      pull: undefined,
      subscription: this.#connection.listen(inbox, (message) => this.#receive(slot, message)),
    }
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

  #receive({ pull }: Slot, message: Msg): void {
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
   * A message that was asked for by an earlier pull in this subscription: a server that froze answers, when it wakes, what
   * others have answered for it. It is for whoever pulls from its consumer now, or is given back.
   */
  #receiveStray(message: Msg, reply: string): void {
    for (const { pull } of this.#slots) {
      if (!pull || !reply.includes(pull.origin)) continue
      pull.onMessage(message)
      return pull.end('done')
    }
    this.#connection.nc.publish(reply, NAK)
  }

  close(): void {
    for (const slot of this.#slots) {
      slot.pull?.end('gone')
      clearTimeout(slot.pull?.timer)
      this.#drop(slot)
    }
    this.#free.length = 0
  }
}
