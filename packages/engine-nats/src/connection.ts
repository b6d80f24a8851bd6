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
 * The one connection of a node. While it is lost, calls wait for it a bounded time and then fail; everything that
 * waits on the servers is told when it is back.
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

  /** Of the server that this node is connected to. */
  get serverVersion(): string {
    return this.nc.info?.version ?? ''
  }

  async #follow(): Promise<void> {
    for await (const status of this.nc.status()) {
      if (status.type === 'disconnect') this.#lost()
      if (status.type === 'reconnect') this.#found()
      // Errors that belong to no call, such as missing permissions.
      if (status.type === 'error') this.#refused.report(status.error.message, `NATS: ${status.error.message}`)
    }
  }

  #lost(): void {
    if (this.#back || this.#closed) return
    this.#back = Promise.withResolvers()
    this.#settings.onProblem({ kind: 'disconnected', message: 'the connection to NATS is lost; trying again' })
  }

  #found(): void {
    this.#back?.resolve()
    this.#back = undefined
    this.#settings.onProblem({ kind: 'healed', message: 'the connection to NATS is back' })
    for (const listener of this.#onReconnect) this.#owned('after a reconnection', listener)
  }

  onReconnect(listener: () => void): () => void {
    this.#onReconnect.add(listener)
    return () => this.#onReconnect.delete(listener)
  }

  /**
   * Hears what comes under a subject. An error of the handler, thrown or rejected, is reported; thrown into the client it
   * would end its reading from the socket, with a line on the console.
   */
  listen(
    subject: string,
    handler: (message: Msg) => void | Promise<void>,
    options: { readonly queue?: string } = {},
  ): Subscription {
    return this.nc.subscribe(subject, {
      ...options,
      callback: (error, message) => {
        // What the servers refuse comes as a status too.
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

  /** Resolves when there is a connection. @throws BrokerError ENGINE_UNAVAILABLE after a bounded wait */
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

  /** @throws BrokerError ENGINE_UNAVAILABLE; of JetStream's own refusals `translate` may make something else */
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
