import type {
  OutgoingMessage,
  Reply,
  RequestEngine,
  RequestOptions,
  RequestType,
  SubscribeOptions,
  Subscription,
} from '@signalbox/broker-core/engine'
import { messageSize, OpenSubscription, unavailable } from '@signalbox/broker-core/engine'

import { liveKey } from '../channels/live-channels.ts'
import type { Parts } from '../parts.ts'
import { hash } from '../subjects.ts'
import { Requester, SILENCE_MS } from './requester.ts'
import type { RequestHandler } from './responder.ts'
import { Responder } from './responder.ts'

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
    this.#responder = new Responder(parts, workingMs)
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
