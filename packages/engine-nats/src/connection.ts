import { unavailable } from '@signalbox/broker-core/engine'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection, Payload, RequestOptions, Subscription } from '@nats-io/transport-node'

import { reportFailure, runInBackground } from './background.ts'
import { connectToServers } from './connect.ts'
import { asBrokerError } from './errors.ts'
import type { Settings } from './options.ts'
import { ReportOnce } from './report-once.ts'

/**
 * The connection of a node to NATS. While it is lost, calls wait for it for a limited time and then fail.
 * Listeners are notified when it is back.
 */
export class Connection {
  readonly nc: NatsConnection
  readonly manager: JetStreamManager
  readonly client: JetStreamClient
  readonly #settings: Settings
  readonly #refused: ReportOnce
  readonly #onReconnect = new Set<() => void>()
  #back: PromiseWithResolvers<void> | undefined
  #closed = false

  private constructor(nc: NatsConnection, manager: JetStreamManager, settings: Settings) {
    this.nc = nc
    this.manager = manager
    this.client = jetstream(nc, { timeout: settings.requestTimeoutMs })
    this.#settings = settings
    this.#refused = new ReportOnce(settings.onProblem)
    runInBackground(settings.onProblem, 'following the connection', this.#follow())
  }

  /** @throws NatsEngineError */
  static async open(settings: Settings): Promise<Connection> {
    const nc = await connectToServers(settings)
    try {
      const manager = await jetstreamManager(nc, { timeout: settings.requestTimeoutMs })
      return new Connection(nc, manager, settings)
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

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#back?.resolve()
    await this.nc.close()
  }
}
