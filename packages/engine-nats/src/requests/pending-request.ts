import type { OutgoingMessage, Reply, RequestOptions, RequestType } from '@signalbox/broker-core/engine'
import { BrokerError, encodeRequest } from '@signalbox/broker-core/engine'
import type { Msg, Subscription as Interest } from '@nats-io/transport-node'

import { asBrokerError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { decodeAnswer } from './answers.ts'

/**
 * The interval at which a request without a subscriber is sent again, in milliseconds; it also listens for
 * subscribers.
 */
const AGAIN_MS = 1_000
const MAX_TIMER_MS = 2 ** 31 - 1

/** A request of this node: waits for a subscriber, then for its answer. */
export class PendingRequest {
  /** Resolves with the reply; rejects with the reason if there is none. */
  readonly reply: Promise<Reply>
  /** Nodes that have accepted the request and have not answered. */
  readonly holders = new Set<string>()
  readonly #parts: Parts
  readonly #type: RequestType
  readonly #name: string
  readonly #options: RequestOptions
  readonly #inbox: string
  readonly #silenceMs: number
  readonly #sentAt = Date.now()
  readonly #resolve: (reply: Reply) => void
  readonly #reject: (error: unknown) => void
  /** Kept only until a node accepts it: it is not sent again after that, and may be large. */
  #message: OutgoingMessage | undefined
  #waiting = false
  #allNodesAsked = false
  #announcements: Interest | undefined
  #retry: NodeJS.Timeout | undefined
  #silence: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined

  /** @param inbox The subject of the answers. */
  constructor(
    parts: Parts,
    inbox: string,
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
    this.#inbox = inbox
    this.#type = request.type
    this.#name = request.name
    this.#message = request.message
    this.#options = request.options
    this.#silenceMs = silenceMs
  }

  get #delivered(): boolean {
    return this.#message === undefined
  }

  start(): void {
    const { connection, subjects } = this.#parts
    const { timeoutMs, signal, callerGone } = this.#options
    this.#announcements = connection.listen(subjects.announcement(this.#type, this.#name), () => {
      if (this.#waiting && !this.#delivered) this.#send()
    })
    this.#deadline = setTimeout(
      () => this.#reject(timedOut(this.#delivered, this.#name, timeoutMs)),
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
    this.#reject(this.#options.callerGone?.reason)
  }

  get #isCallerGone(): boolean {
    return this.#options.callerGone?.aborted === true
  }

  #sendLater(send: () => void): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(send, AGAIN_MS)
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
      connection.nc.publish(subjects.request(this.#type, this.#name), payload, { reply: this.#inbox })
    } catch (error) {
      this.#reject(asBrokerError(error))
      return
    }
    // The servers' notice of a missing subscriber may be lost with the connection.
    this.#sendLater(() => {
      if (this.#waiting || this.#isCallerGone) this.#send()
    })
  }

  /** Handles an answer of a subscriber's node, or the servers' notice that there is no subscriber. */
  answer(received: Msg): void {
    if (received.data.length === 0 && received.headers?.code === 503) return this.#noSubscriber()
    const said = decodeAnswer(received.data)
    if (!said) return
    if (said.kind === 'reply') {
      this.holders.delete(said.node)
      this.#resolve(said.reply)
      return
    }
    if (said.kind === 'gone') {
      if (this.holders.size === 0) this.#noSubscriber()
      return
    }
    this.#message = undefined
    clearTimeout(this.#retry)
    this.holders.add(said.node)
    this.#heard()
  }

  #noSubscriber(): void {
    if (this.#delivered) return
    if (this.#isCallerGone) return this.#drop()
    this.#waiting = true
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
      () => this.#reject(timedOut(true, this.#name, timeoutMs, 'its node no longer responds')),
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

function noSubscriber(channel: string, timeoutMs: number): BrokerError {
  return new BrokerError('NO_SUBSCRIBER', `${JSON.stringify(channel)} has no subscriber`, { timeoutMs })
}

function timedOut(delivered: boolean, channel: string, timeoutMs: number, why = ''): BrokerError {
  const shown = JSON.stringify(channel)
  if (!delivered) {
    return new BrokerError('NO_SUBSCRIBER', `${shown} had no subscriber for ${timeoutMs / 1000} s`, { timeoutMs })
  }
  const detail = why === '' ? ` within ${timeoutMs / 1000} s` : `: ${why}`
  return new BrokerError('REQUEST_TIMEOUT', `the subscriber of ${shown} did not answer${detail}`, { timeoutMs })
}
