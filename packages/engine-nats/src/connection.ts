import { unavailable } from '@signalbox/broker-core/engine'
import { Semaphore } from '@signalbox/broker-core/internal'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection, Payload, RequestOptions, Subscription } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'

import { connectToServers, readConnectionData } from './connect.ts'
import type { ConnectionData } from './connection-options.ts'
import { API, asBrokerError, isApiError } from './errors.ts'
import type { Interest } from './large/large-messages.ts'
import { LARGE_BYTES, LargeMessages } from './large/large-messages.ts'
import type { HeaderValues, Received } from './large/thread-calls.ts'
import { headersOf } from './large/thread-calls.ts'
import type { Settings } from './options.ts'
import { reportFailure, ReportOnce, runInBackground } from './problems.ts'

/**
 * The bytes of answers of unknown size that are on their way, if each had the maximum size of a message: a server that
 * sends many megabytes delays its answers to everyone.
 */
const READ_BYTES = 16 * 1024 * 1024
/** The most requests for such answers at a time. */
const MAX_READS = 64

/**
 * The connection of a node to NATS. While it is lost, calls wait for it for a limited time and then fail.
 * Listeners are notified when it is back. Large messages travel on a second one: see {@link LargeMessages}.
 */
export class Connection {
  readonly nc: NatsConnection
  readonly large: LargeMessages
  readonly manager: JetStreamManager
  readonly client: JetStreamClient
  readonly #settings: Settings
  readonly #refused: ReportOnce
  readonly #onReconnect = new Set<() => void>()
  readonly #space: Semaphore
  /** The time of the last answer to such a request. */
  #answeredAt = 0
  #back: PromiseWithResolvers<void> | undefined
  #closed = false

  private constructor(nc: NatsConnection, data: ConnectionData, manager: JetStreamManager, settings: Settings) {
    this.nc = nc
    this.manager = manager
    this.client = jetstream(nc, { timeout: settings.requestTimeoutMs })
    this.#settings = settings
    this.#refused = new ReportOnce(settings.onProblem)
    this.large = new LargeMessages(data, this.#refused)
    const fitting = Math.floor(READ_BYTES / this.maxPayload)
    this.#space = new Semaphore(Math.max(1, Math.min(MAX_READS, fitting)))
    runInBackground(settings.onProblem, 'following the connection', this.#follow())
  }

  /** @throws NatsEngineError */
  static async open(settings: Settings): Promise<Connection> {
    const data = await readConnectionData(settings)
    const nc = await connectToServers(settings, data)
    try {
      const manager = await jetstreamManager(nc, { timeout: settings.requestTimeoutMs })
      return new Connection(nc, data, manager, settings)
    } catch (error) {
      await nc.close()
      throw error
    }
  }

  get connected(): boolean {
    return this.#back === undefined && !this.#closed
  }

  get maxPayload(): number {
    return this.nc.info?.max_payload ?? 1024 * 1024
  }

  /** The version of the server that this node is connected to. */
  get serverVersion(): string {
    return this.nc.info?.version ?? ''
  }

  async #follow(): Promise<void> {
    for await (const status of this.nc.status()) {
      if (status.type === 'disconnect') this.#lost()
      if (status.type === 'reconnect') this.#found()
      // Errors without a call, such as missing permissions.
      if (status.type === 'error') this.#refused.report(status.error.message, `NATS: ${status.error.message}`)
    }
  }

  #lost(): void {
    if (this.#back || this.#closed) return
    this.#back = Promise.withResolvers()
    this.#settings.onProblem({ kind: 'disconnected', message: 'the connection to NATS is lost; reconnecting' })
  }

  #found(): void {
    this.#back?.resolve()
    this.#back = undefined
    this.#settings.onProblem({ kind: 'healed', message: 'the connection to NATS is back' })
    for (const listener of this.#onReconnect) this.#owned('a task after a reconnection', listener)
  }

  onReconnect(listener: () => void): () => void {
    this.#onReconnect.add(listener)
    return () => this.#onReconnect.delete(listener)
  }

  /**
   * Subscribes to a subject. Reports errors of the handler, thrown or rejected: an error thrown into the
   * client would end its reading from the socket, and print to the console.
   */
  listen(
    subject: string,
    handler: (message: Msg) => void | Promise<void>,
    options: { readonly queue?: string } = {},
  ): Subscription {
    return this.nc.subscribe(subject, {
      ...options,
      callback: (error, message) => {
        // A refusal of the servers arrives as a status too.
        if (!error) this.#owned('handling a message', () => handler(message))
      },
    })
  }

  #owned(what: string, work: () => void | Promise<void>): void {
    const { onProblem } = this.#settings
    try {
      const done = work()
      if (done instanceof Promise) runInBackground(onProblem, what, done)
    } catch (error) {
      if (!this.#closed) reportFailure(onProblem, what, error)
    }
  }

  /**
   * Resolves when there is a connection.
   * @throws BrokerError ENGINE_UNAVAILABLE after `patienceMs`
   */
  async ready(): Promise<void> {
    if (this.#closed) throw unavailable('it is closed')
    if (!this.#back) return
    const late = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => late.resolve(true), this.#settings.patienceMs)
    const isLate = await Promise.race([late.promise, this.#back.promise.then(() => false)])
    clearTimeout(timer)
    if (this.#closed) throw unavailable('it is closed')
    if (isLate) throw unavailable('the connection to NATS is lost')
  }

  /**
   * Runs a request to the servers when there is a connection.
   * @param translate Returns the error to throw for an error of JetStream; undefined means
   * ENGINE_UNAVAILABLE.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async call<T>(work: () => Promise<T>, translate: (error: unknown) => unknown = () => undefined): Promise<T> {
    await this.ready()
    try {
      return await work()
    } catch (error) {
      throw translate(error) ?? asBrokerError(error)
    }
  }

  request(subject: string, payload?: Payload, options?: Partial<RequestOptions>): Promise<Msg> {
    return this.call(() => this.nc.request(subject, payload, { timeout: this.#settings.requestTimeoutMs, ...options }))
  }

  /** Runs a request that reads a stream; as a large message if the stream has such ones. */
  read(stream: string, subject: string, query: string, timeoutMs = this.#settings.requestTimeoutMs): Promise<Received> {
    return this.call(async () => {
      if (this.large.receives(stream)) return this.large.request(subject, query, { timeoutMs })
      const answer = await this.exchange(subject, query, { timeoutMs })
      if (answer.data.byteLength >= LARGE_BYTES) this.large.expectFrom(stream)
      return answer
    })
  }

  /** Sends a request at once. Rejects with the errors of the client library. */
  exchange(
    subject: string,
    payload: Uint8Array | string,
    { timeoutMs, headers }: { readonly timeoutMs: number; readonly headers?: HeaderValues },
  ): Promise<Received> {
    const options = { timeout: timeoutMs, ...(headers && headers.length > 0 && { headers: headersOf(headers) }) }
    return this.nc.request(subject, payload, options)
  }

  /** Subscribes to a subject as {@link listen} does, on the connection for large messages. */
  listenLarge(subject: string, handler: (message: Received) => void): Interest {
    return this.large.listen(subject, (message) => this.#owned('handling a large message', () => handler(message)))
  }

  /**
   * Runs a request for one message of unknown size when there is space for its answer: see {@link READ_BYTES}. Streams
   * take turns, so that many large messages of one delay another by one of them.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async withSpace<T>(stream: string, request: () => Promise<T>): Promise<T> {
    const begin = performance.now()
    await this.#space.acquire(undefined, stream)
    try {
      // Otherwise, requests that wait for each other would all wait for servers that do not answer.
      const silentMs = performance.now() - Math.max(begin, this.#answeredAt)
      if (silentMs > this.#settings.requestTimeoutMs) throw unavailable('the NATS servers do not answer')
      const answer = await request()
      this.#answeredAt = performance.now()
      return answer
    } finally {
      this.#space.release(stream)
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#back?.resolve()
    await Promise.all([this.nc.close(), this.large.close()])
  }
}

const TRIES = 6
const PAUSE_MS = 50

/**
 * Creates an object that every node creates if it is missing. When several nodes start at once, a server may
 * report to one that the stream does not exist, and then that its subjects are taken; that node tries again.
 */
export async function sharedSetUp<T>(make: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await make()
    } catch (error) {
      if (tries === TRIES || !isApiError(error, API.SUBJECTS_OVERLAP)) throw error
      await pause(PAUSE_MS * tries)
    }
  }
}
