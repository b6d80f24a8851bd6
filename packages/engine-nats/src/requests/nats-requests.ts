import type {
  EncodedRequest,
  OutgoingMessage,
  Reply,
  RequestEngine,
  RequestHandler,
  RequestMessage,
  RequestOptions,
  RequestType,
  SubscribeOptions,
  Subscription,
} from '@signalbox/broker-core/engine'
import {
  decodeRequest,
  MESSAGE_ENVELOPE_BYTES,
  messageSize,
  OpenSubscription,
  toMessage,
  unavailable,
} from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'
import { Buffer } from 'node:buffer'

import { liveKey } from '../channels/live-channels.ts'
import type { Parts } from '../parts.ts'
import { failure, runInBackground } from '../problems.ts'
import { hash } from '../subjects.ts'
import type { RequestAnswer } from './requester.ts'
import { encodeAnswer, Requester, SILENCE_MS } from './requester.ts'
import { FAILED_REPLY, MAX_TIMER_MS, MultiMap } from '@signalbox/broker-core/internal'

/** Commands and queries on NATS: core subjects, on which each group of subscribers is a queue group. */
export class NatsRequests implements RequestEngine {
  readonly #parts: Parts
  readonly #requester: Requester
  readonly #responder: Responder
  readonly #subscriptions = new Map<OpenSubscription, string>()
  #closed = false

  constructor(parts: Parts, silenceMs = SILENCE_MS, workingMs?: number) {
    this.#parts = parts
    this.#requester = new Requester(parts, silenceMs)
    this.#responder = new Responder(parts, this.#requester, workingMs)
  }

  async request(type: RequestType, name: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply> {
    options.signal?.throwIfAborted()
    options.callerGone?.throwIfAborted()
    await this.#parts.connection.ready()
    if (this.#closed) throw unavailable('it is closed')
    this.#requester.assertFits(name, message)
    const { liveChannels, counterTable } = this.#parts
    if (options.onlyIfSubscribed !== true) liveChannels.ensure(type, name)
    if (liveChannels.has(type, name)) counterTable.received(liveKey(type, name), 1, messageSize(message))
    return this.#requester.request(type, name, message, options)
  }

  async serve(
    type: RequestType,
    name: string,
    { group, signal }: SubscribeOptions,
    handler: RequestHandler,
  ): Promise<Subscription> {
    const { connection, liveChannels, counterTable, subjects } = this.#parts
    signal?.throwIfAborted()
    await connection.ready()
    liveChannels.ensure(type, name)
    const key = liveKey(type, name)
    const interest = connection.listen(
      subjects.request(type, name),
      (message) => {
        const request = this.#responder.read(message)
        if (!request) return
        if (subscription.ended) return this.#responder.refuse(message)
        liveChannels.hear({ type, name, exists: true })
        counterTable.delivered(key, 1, messageSize(request.message))
        this.#responder.handle(message.reply ?? '', request, handler)
      },
      { queue: group === undefined ? 'none' : hash(group) },
    )
    const subscription: OpenSubscription = new OpenSubscription(signal, () => {
      // Requests that are on their way are refused, so that they are not lost.
      interest.drain().catch(() => {})
      this.#subscriptions.delete(subscription)
      counterTable.subscribers(key, -1)
    })
    this.#subscriptions.set(subscription, key)
    counterTable.subscribers(key, 1)
    await connection.call(() => connection.nc.flush())
    connection.nc.publish(subjects.announcement(type, name))
    const close = async (): Promise<void> => {
      subscription.end()
      if (connection.connected && !this.#closed) await connection.nc.flush().catch(() => {})
    }
    return { closed: subscription.closed, close, [Symbol.asyncDispose]: close }
  }

  isUsed(type: RequestType, name: string): boolean {
    const key = liveKey(type, name)
    for (const used of this.#subscriptions.values()) if (used === key) return true
    return false
  }

  close(): void {
    this.#closed = true
    this.#requester.close()
    this.#responder.close()
    for (const subscription of this.#subscriptions.keys()) subscription.end(unavailable('it is closed'))
  }
}

/** The interval at which a node reports that it is still working on a request, in milliseconds. */
const WORKING_MS = 5_000
const TOO_LARGE: Reply = { ...FAILED_REPLY, error: 'the answer is larger than the NATS servers accept (max_payload)' }

/** Handles requests that arrived on this node, and reports their progress to the requesters. */
class Responder {
  readonly #parts: Parts
  readonly #requester: Requester
  readonly #workingMs: number
  /**
   * The running handlers by the inbox of the answer. Several groups may handle the same request on one node.
   */
  readonly #handling = new MultiMap<string, AbortController>()

  /** @param requester The requests of this node, whose answers do not need the servers */
  constructor(parts: Parts, requester: Requester, workingMs = WORKING_MS) {
    this.#parts = parts
    this.#requester = requester
    this.#workingMs = workingMs
    const { connection, subjects, node } = parts
    connection.listen(subjects.node(node, 'cancel'), (message) => {
      for (const controller of this.#handling.get(message.string())) controller.abort()
    })
  }

  /** Refuses a request that arrived while the subscriber was closing, so that others get it. */
  refuse({ reply = '' }: Msg): void {
    this.#say(reply, { kind: 'gone', node: this.#parts.node })
  }

  /** Decodes a request. Returns undefined if it is not valid. */
  read(message: Msg): EncodedRequest | undefined {
    return message.reply === undefined ? undefined : decodeRequest(message.data)
  }

  /**
   * Runs the handler and sends its reply. Not async, so that meanwhile the node keeps only the data that the
   * answer needs.
   */
  handle(inbox: string, request: EncodedRequest, handler: RequestHandler): void {
    const controller = new AbortController()
    this.#handling.add(inbox, controller)
    const late = setTimeout(() => controller.abort(), Math.min(request.leftMs, MAX_TIMER_MS)).unref()
    const replied = this.#replied(handler, requestMessage(request, controller.signal))
    const settled = this.#settle(inbox, controller, late, replied)
    runInBackground(this.#parts.settings.onProblem, 'answering a command or query', settled)
  }

  /** Calls the handler, and turns an error that it throws synchronously into a rejection. */
  #replied(handler: RequestHandler, request: RequestMessage): Promise<Reply> {
    try {
      return handler(request)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #settle(
    inbox: string,
    controller: AbortController,
    late: NodeJS.Timeout,
    replied: Promise<Reply>,
  ): Promise<void> {
    const { settings } = this.#parts
    const working = this.#reportProgress(inbox)
    let reply = FAILED_REPLY
    try {
      reply = await replied
    } catch (error) {
      // The error may contain details that are not for the requester; after an abort no answer is needed.
      if (!controller.signal.aborted) {
        settings.onProblem({ kind: 'listener', message: 'the handler of a command or query threw', error })
      }
    } finally {
      clearInterval(working)
      clearTimeout(late)
      this.#handling.delete(inbox, controller)
    }
    if (!controller.signal.aborted) await this.#answer(inbox, reply)
  }

  /** Reports to the requester that the request was accepted, and then repeatedly that it is being handled. */
  #reportProgress(inbox: string): NodeJS.Timeout {
    const { connection, node, settings } = this.#parts
    const say = (kind: 'accepted' | 'working'): void => {
      try {
        if (connection.connected) this.#say(inbox, { kind, node })
      } catch (error) {
        settings.onProblem(failure('reporting the progress of a request', error))
      }
    }
    say('accepted')
    return setInterval(() => say('working'), this.#workingMs).unref()
  }

  async #answer(inbox: string, reply: Reply): Promise<void> {
    const { connection, publisher, settings, node } = this.#parts
    try {
      const bytes = messageSize(reply) + Buffer.byteLength(reply.error) + MESSAGE_ENVELOPE_BYTES / 4
      const fits = publisher.fits(bytes)
      await connection.ready()
      this.#say(inbox, { kind: 'reply', node, reply: fits ? reply : TOO_LARGE })
    } catch (error) {
      settings.onProblem(failure('answering a command or query', error))
    }
  }

  /** Passes an answer to the requester: at once if that is on this node. */
  #say(inbox: string, answer: RequestAnswer): void {
    if (!this.#requester.hear(inbox, answer)) this.#parts.connection.nc.publish(inbox, encodeAnswer(answer))
  }

  /** Aborts all handlers when the engine closes; their requesters receive no answer. */
  close(): void {
    for (const controller of this.#handling.values()) controller.abort()
  }
}

function requestMessage({ message, channel, sentAt, timeoutMs }: EncodedRequest, signal: AbortSignal): RequestMessage {
  return { ...toMessage(message, { channel, timestamp: sentAt }), deadline: sentAt + timeoutMs, signal }
}
