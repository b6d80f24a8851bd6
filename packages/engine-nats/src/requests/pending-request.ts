import type { OutgoingMessage, Reply, RequestOptions, RequestType } from '@signalbox/broker-core/engine'
import { BrokerError } from '@signalbox/broker-core/engine'
import type { Msg, Subscription as Interest } from '@nats-io/transport-node'

import { asBrokerError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { decodeAnswer, encodeRequest } from './wire.ts'

/** A request waits for subscribers by asking again this often, in milliseconds, besides listening for them. */
const AGAIN_MS = 1_000
const MAX_TIMER_MS = 2 ** 31 - 1

/** A request of this node: waits for a subscriber, then for its answer. */
export class PendingRequest {
  /** The reply, or why there is none. */
  readonly reply: Promise<Reply>
  /** Nodes that have the request and have not answered. */
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
  /** Only until somebody has it: it is never sent again then, and may be large. */
  #message: OutgoingMessage | undefined
  #waiting = false
  #everyoneWasAsked = false
  #announcements: Interest | undefined
  #retry: NodeJS.Timeout | undefined
  #silence: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined

  /** @param inbox Where answers come in. */
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

  /** Sent, and its fate unknown: a node that has it reports that now, and it runs on. */
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
      const payload = encodeRequest(this.#name, message, this.#sentAt, this.#options.timeoutMs)
      publisher.assertFits(payload)
      connection.nc.publish(subjects.request(this.#type, this.#name), payload, { reply: this.#inbox })
    } catch (error) {
      this.#reject(asBrokerError(error))
      return
    }
    // A lost connection takes the servers' word that nobody is there with it.
    this.#sendLater(() => {
      if (this.#waiting || this.#isCallerGone) this.#send()
    })
  }

  /** What a subscriber's node says, or the servers in its place. */
  answer(received: Msg): void {
    if (received.data.length === 0 && received.headers?.code === 503) return this.#nobody()
    const said = decodeAnswer(received.data)
    if (!said) return
    if (said.kind === 'reply') {
      this.holders.delete(said.node)
      this.#resolve(said.reply)
      return
    }
    if (said.kind === 'gone') {
      if (this.holders.size === 0) this.#nobody()
      return
    }
    this.#message = undefined
    clearTimeout(this.#retry)
    this.holders.add(said.node)
    this.#heard()
  }

  #nobody(): void {
    if (this.#delivered) return
    if (this.#isCallerGone) return this.#drop()
    this.#waiting = true
    this.#sendLater(() => this.#send())
    if (this.#options.onlyIfSubscribed === true) this.#giveUp().catch(this.#reject)
  }

  /** The servers do not know of subscribers whose node is cut off from them just now: such a node is waited for. */
  async #giveUp(): Promise<void> {
    if (this.#everyoneWasAsked) return this.#reject(nobodyThere(this.#name, this.#options.timeoutMs))
    if (!(await this.#parts.peers.everyoneAnswers()) || !this.#waiting || this.#delivered) return
    this.#everyoneWasAsked = true
    this.#send()
  }

  #heard(): void {
    const { timeoutMs } = this.#options
    clearTimeout(this.#silence)
    this.#silence = setTimeout(
      () => this.#reject(timedOut(true, this.#name, timeoutMs, 'its node is silent')),
      this.#silenceMs,
    )
  }

  fail(error: unknown): void {
    this.#reject(error)
  }

  /** It is over, one way or another: nothing of it stays. */
  end(): void {
    const { signal, callerGone } = this.#options
    for (const timer of [this.#retry, this.#silence, this.#deadline]) clearTimeout(timer)
    signal?.removeEventListener('abort', this.#onAbort)
    callerGone?.removeEventListener('abort', this.#onCallerGone)
    this.#announcements?.unsubscribe()
    this.#message = undefined
  }
}

function nobodyThere(channel: string, timeoutMs: number): BrokerError {
  return new BrokerError('NO_SUBSCRIBER', `nobody is subscribed to ${JSON.stringify(channel)}`, { timeoutMs })
}

function timedOut(delivered: boolean, channel: string, timeoutMs: number, why = ''): BrokerError {
  const shown = JSON.stringify(channel)
  if (!delivered) {
    return new BrokerError('NO_SUBSCRIBER', `nobody was subscribed to ${shown} for ${timeoutMs} ms`, { timeoutMs })
  }
  const detail = why === '' ? `within ${timeoutMs} ms` : `: ${why}`
  return new BrokerError('REQUEST_TIMEOUT', `the subscriber of ${shown} did not answer ${detail}`, { timeoutMs })
}
