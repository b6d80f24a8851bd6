import { unavailable } from '@signalbox/broker-core/engine'
import { messageOf, readSmallFile, Semaphore } from '@signalbox/broker-core/internal'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type {
  Msg,
  NatsConnection,
  NodeConnectionOptions,
  Payload,
  RequestOptions,
  Subscription,
} from '@nats-io/transport-node'
import { connect, credsAuthenticator, errors } from '@nats-io/transport-node'
import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { checkServerIdentity } from 'node:tls'

import { API, asBrokerError, isApiError, NatsEngineError } from './errors.ts'
import type { Settings } from './options.ts'
import { withoutPassword } from './options.ts'
import { reportFailure, ReportOnce, runInBackground } from './problems.ts'

/**
 * The bytes of answers of unknown size that are on their way, if each had the maximum size of a message. The servers close
 * a connection to which they have to send 64 MB.
 */
const LARGE_BYTES = 32 * 1024 * 1024
/** The most requests for such answers at a time. */
const MAX_READS = 64

/**
 * The connection of a node to NATS. While it is lost, calls wait for it for a limited time and then fail.
 * Listeners are notified when it is back. Large answers come on a second connection, because everything else would wait
 * behind them.
 */
export class Connection {
  readonly nc: NatsConnection
  readonly #reads: NatsConnection
  #readsAreLost = false
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

  private constructor(nc: NatsConnection, reads: NatsConnection, manager: JetStreamManager, settings: Settings) {
    this.nc = nc
    this.#reads = reads
    this.manager = manager
    this.client = jetstream(nc, { timeout: settings.requestTimeoutMs })
    this.#settings = settings
    this.#refused = new ReportOnce(settings.onProblem)
    const fitting = Math.floor(LARGE_BYTES / this.maxPayload)
    this.#space = new Semaphore(Math.max(1, Math.min(MAX_READS, fitting)))
    runInBackground(settings.onProblem, 'following the connection', this.#follow())
    runInBackground(settings.onProblem, 'following the connection for reads', this.#followReads())
  }

  /** @throws NatsEngineError */
  static async open(settings: Settings): Promise<Connection> {
    const nc = await connectToServers(settings, settings.prefix)
    let reads: NatsConnection | undefined
    try {
      reads = await connectToServers(settings, `${settings.prefix}-reads`)
      const manager = await jetstreamManager(nc, { timeout: settings.requestTimeoutMs })
      return new Connection(nc, reads, manager, settings)
    } catch (error) {
      await Promise.all([nc.close(), reads?.close()])
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

  async #followReads(): Promise<void> {
    for await (const status of this.#reads.status()) {
      if (status.type === 'disconnect') this.#readsAreLost = true
      if (status.type === 'reconnect') this.#readsAreLost = false
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

  /** Runs a request as {@link request} does, on the second connection: its answer may be large. */
  read(subject: string, payload: Payload, options?: Partial<RequestOptions>): Promise<Msg> {
    return this.call(() => {
      const connection = this.#readsAreLost ? this.nc : this.#reads
      return connection.request(subject, payload, { timeout: this.#settings.requestTimeoutMs, ...options })
    })
  }

  /**
   * Runs a request for one message of unknown size when there is space for its answer: see {@link LARGE_BYTES}. Streams
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
      this.#space.release()
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#back?.resolve()
    await Promise.all([this.nc.close(), this.#reads.close()])
  }
}

const RETRY_MS = 1_000

/**
 * Opens a connection. Waits for the servers as long as the settings allow, and reports the wait
 * once.
 * @param name Its name on the servers
 * @throws NatsEngineError OPTION_INVALID, SERVERS_UNREACHABLE, SERVERS_REFUSED
 */
async function connectToServers(settings: Settings, name: string): Promise<NatsConnection> {
  const options = await connectionOptions(settings, name)
  const shown = settings.servers.map(withoutPassword).join(', ')
  for (let waiting = false; ;) {
    settings.signal?.throwIfAborted()
    try {
      const connection = await connect(options)
      if (waiting) settings.onProblem({ kind: 'healed', message: `connected to NATS at ${shown}` })
      return connection
    } catch (error) {
      if (isRefusal(error)) {
        throw new NatsEngineError('SERVERS_REFUSED', `NATS refused the connection to ${shown}: ${messageOf(error)}`, {
          cause: error,
        })
      }
      if (!settings.waitForServers) {
        throw new NatsEngineError('SERVERS_UNREACHABLE', `NATS cannot be reached at ${shown}`, { cause: error })
      }
      if (!waiting) {
        settings.onProblem({
          kind: 'disconnected',
          message: `NATS cannot be reached at ${shown}; waiting for it`,
          error,
        })
      }
      waiting = true
    }
    // An abort ends the wait; the check at the top of the loop throws its reason.
    await pause(RETRY_MS, undefined, { signal: settings.signal }).catch(() => {})
  }
}

async function connectionOptions(settings: Settings, name: string): Promise<NodeConnectionOptions> {
  const { servers, credsFile, tls } = settings
  const withUser = servers.map(credentialsIn).find((found) => found !== undefined)
  const creds = credsFile === undefined ? undefined : await readOption('credsFile', credsFile)
  const tlsOptions = {
    checkServerIdentity: identityCheck(servers),
    ...(tls?.caFile !== undefined && { ca: await readOption('tls.caFile', tls.caFile) }),
    ...(tls?.certFile !== undefined && { cert: await readOption('tls.certFile', tls.certFile) }),
    ...(tls?.keyFile !== undefined && { key: await readOption('tls.keyFile', tls.keyFile) }),
  }
  const encrypted = Object.keys(tls ?? {}).length > 0 || servers.some((server) => server.startsWith('tls://'))
  return {
    servers: servers.map((server) => withoutPassword(server).replace(/^\w+:\/\//, '')),
    name,
    timeout: settings.requestTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    // Credentials may be in rotation: a refusal during a reconnection does not end the engine.
    ignoreAuthErrorAbort: true,
    // A frozen server is given up after two unanswered pings, that is after 4 to 6 s: about as long as a call
    // waits for an answer.
    pingInterval: 2_000,
    maxPingOut: 2,
    noAsyncTraces: true,
    ...(encrypted && { tls: tlsOptions }),
    ...(creds !== undefined && { authenticator: credsAuthenticator(new TextEncoder().encode(creds)) }),
    ...(creds === undefined && withUser),
  }
}

/**
 * Checks the server's certificate. For a server that is addressed by its IP, the client passes no host, and
 * Node looks for `localhost` in the certificate: it must then contain one of the given addresses.
 */
function identityCheck(servers: readonly string[]): typeof checkServerIdentity {
  const addresses = servers
    .map((server) => new URL(`nats://${withoutPassword(server).replace(/^\w+:\/\//, '')}`).hostname)
    .map((host) => host.replace(/^\[(.*)\]$/, '$1'))
    .filter((host) => isIP(host) !== 0)
  return (host, certificate) => {
    const problem = checkServerIdentity(host, certificate)
    if (!problem || host !== 'localhost') return problem
    return addresses.some((address) => !checkServerIdentity(address, certificate)) ? undefined : problem
  }
}

function credentialsIn(server: string): { user: string; pass: string } | undefined {
  const match = /^(?:\w+:\/\/)?([^@]*)@/.exec(server)
  if (match?.[1] === undefined) return undefined
  const [user = '', ...pass] = match[1].split(':')
  return { user: decodeURIComponent(user), pass: decodeURIComponent(pass.join(':')) }
}

async function readOption(name: string, file: string): Promise<string> {
  try {
    return (await readSmallFile(file)).text
  } catch (error) {
    throw new NatsEngineError('OPTION_INVALID', `invalid option ${name}: ${messageOf(error)}`, { cause: error })
  }
}

const CERTIFICATE = /certificate|self[- ]signed|unable to verify|ERR_TLS|altnames|secure connection/i

function isRefusal(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof errors.AuthorizationError) return true
    if (CERTIFICATE.test(cause.message)) return true
    if ('code' in cause && typeof cause.code === 'string' && CERTIFICATE.test(cause.code)) return true
  }
  return false
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
