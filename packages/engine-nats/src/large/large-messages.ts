import { unavailable } from '@signalbox/broker-core/engine'
import { messageOf, startThread } from '@signalbox/broker-core/internal'
import type { Worker } from 'node:worker_threads'

import type { ConnectionData } from '../connection-options.ts'
import type { ReportOnce } from '../problems.ts'
import type { HeaderValues, Received, ThreadCall, ThreadNews } from './thread-calls.ts'
import { errorFrom, movable, receivedFrom } from './thread-calls.ts'

/** Messages from this size on are large, in bytes: they travel through the thread. */
export const LARGE_BYTES = 262_144

/** The streams of which a node knows that they have large messages. */
const MAX_KNOWN = 10_000

/** The pause before another thread is started after one has failed, in ms. */
const AGAIN_MS = 10_000

const LOST = 'the second connection is lost; large messages use the first one until it is back'

interface Pending {
  readonly subject: string
  readonly resolve: (message: Received | undefined) => void
  readonly reject: (error: Error) => void
}

/** A subscription of the thread's connection. */
export interface Interest {
  unsubscribe(): void
  /** Ends it after the messages that the servers have sent already. */
  drain(): Promise<void>
}

/**
 * A second connection to the servers, in a thread: to receive or send ten megabytes keeps an event loop busy for some
 * hundred milliseconds, and all small messages on the same connection would wait behind them. The thread starts with
 * the first large message of the node; until it is connected, and while its connection is lost, large messages use the
 * connection of the small ones.
 */
export class LargeMessages {
  readonly #data: ConnectionData
  readonly #problems: ReportOnce
  readonly #streams = new Set<string>()
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Map<string, (message: Received) => void>()
  readonly #onLost = new Set<() => void>()
  #thread: Worker | undefined
  #connected = false
  #failedAt = -Infinity
  #next = 0
  #closed = false

  constructor(data: ConnectionData, problems: ReportOnce) {
    this.#data = { ...data, name: `${data.name}-large` }
    this.#problems = problems
  }

  /** Calls a function when messages of the thread's subscriptions may be lost. */
  onLost(listener: () => void): void {
    this.#onLost.add(listener)
  }

  get isStarted(): boolean {
    return this.#thread !== undefined
  }

  get isOpen(): boolean {
    return this.#connected
  }

  /** Returns whether a message of so many bytes is to be sent through the thread. */
  takes(bytes: number): boolean {
    if (bytes < LARGE_BYTES) return false
    this.#start()
    return this.#connected
  }

  /** Returns whether messages of a stream are to be received through the thread: it had large ones. */
  receives(stream: string): boolean {
    return this.#connected && this.#streams.has(stream)
  }

  /** Notes that a stream has large messages. */
  expectFrom(stream: string): void {
    if (this.#streams.size >= MAX_KNOWN) this.#streams.clear()
    this.#streams.add(stream)
    this.#start()
  }

  /** Sends a request. A payload that has a buffer for itself is moved: the caller must not use it any more. */
  async request(
    subject: string,
    payload: Uint8Array | string,
    { timeoutMs, headers = [] }: { readonly timeoutMs: number; readonly headers?: HeaderValues },
  ): Promise<Received> {
    const id = this.#next++
    const answered = this.#answered(id, subject)
    const { own, moved } = movable(payload)
    this.#post({ kind: 'request', id, subject, payload: own, headers, timeoutMs }, moved)
    const message = await answered
    if (message === undefined) throw unavailable('NATS answered without a message')
    return message
  }

  /** Publishes a message. A payload that has a buffer for itself is moved: the caller must not use it any more. */
  publish(subject: string, payload: Uint8Array | string, reply: string): void {
    const { own, moved } = movable(payload)
    this.#post({ kind: 'publish', subject, payload: own, reply }, moved)
  }

  /** Subscribes to a subject, also on a thread that starts later. */
  listen(subject: string, listener: (message: Received) => void): Interest {
    this.#listeners.set(subject, listener)
    this.#post({ kind: 'subscribe', subject })
    return {
      unsubscribe: () => {
        if (this.#listeners.delete(subject)) this.#post({ kind: 'unsubscribe', subject })
      },
      drain: async () => {
        if (this.#connected) await this.#drain(subject)
        this.#listeners.delete(subject)
      },
    }
  }

  /** Resolves also when the connection is lost: then no more messages come. */
  async #drain(subject: string): Promise<void> {
    const id = this.#next++
    const drained = this.#answered(id, subject)
    const lost = Promise.withResolvers<void>()
    this.#onLost.add(lost.resolve)
    this.#post({ kind: 'drain', id, subject })
    await Promise.race([drained, lost.promise])
    this.#onLost.delete(lost.resolve)
  }

  #answered(id: number, subject: string): Promise<Received | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#thread) this.#pending.set(id, { subject, resolve, reject })
      else reject(unavailable('the connection to NATS is lost'))
    })
  }

  #report(message: string): void {
    this.#problems.report(message, `NATS: ${message}`)
  }

  #post(call: ThreadCall, moved: ArrayBuffer[] = []): void {
    this.#thread?.postMessage(call, moved)
  }

  #start(): void {
    if (this.#thread || this.#closed || performance.now() - this.#failedAt < AGAIN_MS) return
    const thread = startThread('large-thread', import.meta.url, { name: 'signalbox-nats', workerData: this.#data })
    this.#thread = thread
    for (const subject of this.#listeners.keys()) this.#post({ kind: 'subscribe', subject })
    thread.on('message', (news: ThreadNews) => this.#hear(news))
    thread.on('error', (error) => {
      if (!this.#closed) this.#report(`the thread for large messages ended: ${messageOf(error)}`)
    })
    thread.on('exit', () => this.#ended())
  }

  #hear(news: ThreadNews): void {
    if (news.kind === 'message') return this.#listeners.get(news.subscription)?.(receivedFrom(news.message))
    if (news.kind === 'problem') return this.#report(news.message)
    if (news.kind === 'connected' || news.kind === 'disconnected') {
      this.#connected = news.kind === 'connected'
      if (this.#connected) this.#problems.over(LOST)
      else this.#report(LOST)
      for (const listener of this.#onLost) listener()
      return
    }
    const pending = this.#pending.get(news.id)
    this.#pending.delete(news.id)
    if (news.kind === 'answer') pending?.resolve(receivedFrom(news.message))
    else if (news.kind === 'failed') pending?.reject(errorFrom(news.failure, news.message, pending.subject))
    else pending?.resolve(undefined)
  }

  #ended(): void {
    this.#thread = undefined
    this.#connected = false
    this.#failedAt = performance.now()
    for (const { reject } of this.#pending.values()) reject(unavailable('the connection to NATS is lost'))
    this.#pending.clear()
    for (const listener of this.#onLost) listener()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.terminate()
  }
}
