import type { OutgoingMessage, Reply, RequestOptions, RequestType } from '@signalbox/broker-core/engine'
import {
  decodeReply,
  encodeReply,
  encodeRequest,
  MESSAGE_ENVELOPE_BYTES,
  messageSize,
  unavailable,
} from '@signalbox/broker-core/engine'
import type { Subscription as Interest } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'
import { Buffer } from 'node:buffer'

import { asBrokerError } from '../errors.ts'
import type { Received } from '../large/thread-calls.ts'
import type { Parts } from '../parts.ts'
import { MAX_TIMER_MS, noSubscriber, unanswered } from '@signalbox/broker-core/internal'

/** The silence after which a subscriber's node counts as dead, in milliseconds. */
export const SILENCE_MS = 15_000

/** The subjects of the answers to a request, or their beginning, on each connection. */
interface Inboxes {
  readonly small: string
  readonly large: string
}

/** The requests of this node, and the inboxes of their answers. */
export class Requester {
  readonly #parts: Parts
  readonly #silenceMs: number
  readonly #inboxes: Inboxes = { small: createInbox(), large: createInbox() }
  readonly #pending = new Map<string, PendingRequest>()
  #next = 0
  #closed = false

  constructor(parts: Parts, silenceMs: number) {
    this.#parts = parts
    this.#silenceMs = silenceMs
    const { small, large } = this.#inboxes
    parts.connection.listen(`${small}.*`, (message) => this.#receive(message))
    parts.connection.listenLarge(`${large}.*`, (message) => this.#receive(message))
  }

  #receive({ subject, data, headers }: Received): void {
    if (data.length > 0) {
      const answer = decodeAnswer(data)
      if (answer) this.hear(subject, answer)
    } else if (headers?.code === 503) this.#pending.get(idOf(subject))?.noSubscriber()
  }

  /** Handles the answer of a subscriber's node. Returns false if the inbox is that of another node. */
  hear(inbox: string, answer: RequestAnswer): boolean {
    const id = idOf(inbox)
    const { small, large } = this.#inboxes
    if (inbox !== `${small}.${id}` && inbox !== `${large}.${id}`) return false
    const pending = this.#pending.get(id)
    if (pending) pending.answer(answer)
    // It was accepted after its requester stopped waiting.
    else if (answer.kind === 'accepted' || answer.kind === 'working') this.#cancel(answer.node, inbox)
    return true
  }

  #cancel(node: string, inbox: string): void {
    const { connection, subjects } = this.#parts
    if (connection.connected) connection.nc.publish(subjects.node(node, 'cancel'), inbox)
  }

  /** @throws BrokerError MESSAGE_TOO_LARGE */
  assertFits(name: string, message: OutgoingMessage): void {
    this.#parts.publisher.assertFitsBytes(messageSize(message) + Buffer.byteLength(name) + MESSAGE_ENVELOPE_BYTES / 4)
  }

  /** Not async, so that only the pending request holds the message while it waits. */
  request(type: RequestType, name: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply> {
    const id = (this.#next++).toString(36)
    const request = { type, name, message, options }
    const { small, large } = this.#inboxes
    const inboxes = { small: `${small}.${id}`, large: `${large}.${id}` }
    return this.#settled(id, new PendingRequest(this.#parts, inboxes, request, this.#silenceMs))
  }

  async #settled(id: string, pending: PendingRequest): Promise<Reply> {
    this.#pending.set(id, pending)
    try {
      pending.start()
      return await pending.reply
    } finally {
      pending.end()
      this.#pending.delete(id)
      for (const node of pending.holders) this.#cancel(node, pending.inbox)
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  close(): void {
    this.#closed = true
    for (const pending of this.#pending.values()) pending.fail(unavailable('it is closed'))
  }
}

function idOf(inbox: string): string {
  return inbox.slice(inbox.lastIndexOf('.') + 1)
}

/**
 * The interval at which a request without a subscriber is sent again, in milliseconds; it also listens for
 * subscribers. For each megabyte of the request it is longer by as much.
 */
const AGAIN_MS = 1_000
const MEGABYTE = 1_000_000
/** A request of this node: waits for a subscriber, then for its answer. */
class PendingRequest {
  /** Resolves with the reply; rejects with the reason if there is none. */
  readonly reply: Promise<Reply>
  /** Nodes that have accepted the request and have not answered. */
  readonly holders = new Set<string>()
  /** The subject of the answers. */
  inbox: string
  readonly #parts: Parts
  readonly #type: RequestType
  readonly #name: string
  readonly #options: RequestOptions
  readonly #inboxes: Inboxes
  readonly #silenceMs: number
  readonly #sentAt = Date.now()
  readonly #resolve: (reply: Reply) => void
  readonly #reject: (error: unknown) => void
  /** Kept only until a node accepts it: it is not sent again after that, and may be large. */
  #message: OutgoingMessage | undefined
  /** `true` after the request was sent for the first time. */
  #sent = false
  /** `true` if the last answer said that there is no subscriber. */
  #waiting = false
  #allNodesAsked = false
  #announcements: Interest | undefined
  #retry: NodeJS.Timeout | undefined
  #againMs = AGAIN_MS
  #silence: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined

  constructor(
    parts: Parts,
    inboxes: Inboxes,
    request: {
      readonly type: RequestType
      readonly name: string
      readonly message: OutgoingMessage
      readonly options: RequestOptions
    },
    silenceMs: number,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.reply = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#parts = parts
    this.#inboxes = inboxes
    this.inbox = inboxes.small
    this.#type = request.type
    this.#name = request.name
    this.#message = request.message
    this.#options = request.options
    this.#silenceMs = silenceMs
  }

  get #delivered(): boolean {
    return this.#message === undefined
  }

  /** `true` if a subscriber may have the request: its node has accepted it, or its answer may be lost. */
  get #maybeDelivered(): boolean {
    return this.#delivered || (this.#sent && !this.#waiting)
  }

  start(): void {
    const { connection, subjects } = this.#parts
    const { timeoutMs, signal, callerGone } = this.#options
    this.#announcements = connection.listen(subjects.announcement(this.#type, this.#name), () => {
      if (this.#waiting && !this.#delivered) this.#send()
    })
    this.#deadline = setTimeout(
      () => this.#reject(unanswered(this.#maybeDelivered, this.#name, timeoutMs)),
      Math.min(timeoutMs, MAX_TIMER_MS),
    )
    signal?.addEventListener('abort', this.#onAbort)
    callerGone?.addEventListener('abort', this.#onCallerGone)
    this.#send()
  }

  readonly #onAbort = (): void => this.#reject(this.#options.signal?.reason)

  /** A request that was sent runs on: a node that has it may be about to report that. */
  readonly #onCallerGone = (): void => {
    if (this.#delivered) return
    if (this.#waiting || !this.#parts.connection.connected) this.#drop()
  }

  #drop(): void {
    const { callerGone, timeoutMs } = this.#options
    const reason: unknown = callerGone?.reason
    this.#reject(
      this.#maybeDelivered ? unanswered(true, this.#name, timeoutMs, ' before its requester disconnected') : reason,
    )
  }

  get #isCallerGone(): boolean {
    return this.#options.callerGone?.aborted === true
  }

  #sendLater(send: () => void): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(send, this.#againMs)
  }

  #send(): void {
    clearTimeout(this.#retry)
    const message = this.#message
    if (!message) return
    if (this.#isCallerGone) return this.#drop()
    const { connection, publisher, subjects } = this.#parts
    if (!connection.connected) return this.#sendLater(() => this.#send())
    this.#waiting = false
    try {
      const { timeoutMs } = this.#options
      const sentAt = this.#sentAt
      const leftMs = Math.max(1, sentAt + timeoutMs - Date.now())
      const payload = encodeRequest({ message, channel: this.#name, sentAt, timeoutMs, leftMs })
      publisher.assertFits(payload)
      this.#againMs = AGAIN_MS * (1 + payload.byteLength / MEGABYTE)
      const subject = subjects.request(this.#type, this.#name)
      const isLarge = connection.large.takes(payload.byteLength)
      // The notice that there is no subscriber comes on the connection that sent the request.
      this.inbox = isLarge ? this.#inboxes.large : this.#inboxes.small
      if (isLarge) connection.large.publish(subject, payload, this.inbox)
      else connection.nc.publish(subject, payload, { reply: this.inbox })
      this.#sent = true
    } catch (error) {
      this.#reject(asBrokerError(error))
      return
    }
    // The servers' notice of a missing subscriber may be lost with the connection.
    this.#sendLater(() => {
      if (this.#waiting || this.#isCallerGone) this.#send()
    })
  }

  /** Handles an answer of a subscriber's node. */
  answer(said: RequestAnswer): void {
    if (said.kind === 'reply') {
      this.holders.delete(said.node)
      this.#resolve(said.reply)
      return
    }
    if (said.kind === 'gone') {
      if (this.holders.size === 0) this.noSubscriber()
      return
    }
    this.#message = undefined
    clearTimeout(this.#retry)
    this.holders.add(said.node)
    this.#heard()
  }

  /** Handles the notice of the servers, or of a node, that there is no subscriber. */
  noSubscriber(): void {
    if (this.#delivered) return
    this.#waiting = true
    if (this.#isCallerGone) return this.#drop()
    this.#sendLater(() => this.#send())
    if (this.#options.onlyIfSubscribed === true) this.#giveUp().catch(this.#reject)
  }

  /**
   * Rejects the request only after all known nodes answered: the servers do not know the subscribers of a
   * node that is cut off at the moment.
   */
  async #giveUp(): Promise<void> {
    if (this.#allNodesAsked) return this.#reject(noSubscriber(this.#name, this.#options.timeoutMs))
    if (!(await this.#parts.peers.everyoneAnswers()) || !this.#waiting || this.#delivered) return
    this.#allNodesAsked = true
    this.#send()
  }

  #heard(): void {
    const { timeoutMs } = this.#options
    clearTimeout(this.#silence)
    this.#silence = setTimeout(
      () => this.#reject(unanswered(true, this.#name, timeoutMs, ': its node no longer responds')),
      this.#silenceMs,
    )
  }

  fail(error: unknown): void {
    this.#reject(error)
  }

  /** Releases everything that the request holds. */
  end(): void {
    const { signal, callerGone } = this.#options
    for (const timer of [this.#retry, this.#silence, this.#deadline]) clearTimeout(timer)
    signal?.removeEventListener('abort', this.#onAbort)
    callerGone?.removeEventListener('abort', this.#onCallerGone)
    this.#announcements?.unsubscribe()
    this.#message = undefined
  }
}

/**
 * A message of a subscriber's node to the requester: it has accepted the request, is still working on it, cannot accept
 * it, or the answer.
 */
export type RequestAnswer =
  | { readonly kind: 'accepted' | 'working' | 'gone'; readonly node: string }
  | { readonly kind: 'reply'; readonly node: string; readonly reply: Reply }

/** The first byte of each kind. */
const SIGNS = { accepted: 'a', working: 'w', gone: 'g', reply: 'r' } as const

export function encodeAnswer(answer: RequestAnswer): Uint8Array {
  const sign = SIGNS[answer.kind]
  if (answer.kind !== 'reply') return Buffer.from(`${sign}${answer.node}`)
  return Buffer.concat([Buffer.from(sign), encodeReply(answer)])
}

function decodeAnswer(data: Uint8Array): RequestAnswer | undefined {
  const sign = String.fromCharCode(data[0] ?? 0)
  if (sign === SIGNS.reply) {
    const decoded = decodeReply(data.subarray(1))
    return decoded && { kind: 'reply', ...decoded }
  }
  const node = Buffer.from(data.subarray(1)).toString()
  if (sign === SIGNS.accepted) return { kind: 'accepted', node }
  if (sign === SIGNS.working) return { kind: 'working', node }
  if (sign === SIGNS.gone) return { kind: 'gone', node }
  return undefined
}
