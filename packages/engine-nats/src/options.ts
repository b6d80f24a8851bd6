import { NatsEngineError } from './errors.ts'
import { DEFAULT_MAX_CHANNELS } from './settings.ts'

/** How {@link openNatsEngine} finds its cluster, and what it allows. */
export interface NatsEngineOptions {
  /** `nats://host:port` or `tls://host:port`, one or several of one cluster (`NATS_SERVERS`). User and password may stand in them. */
  readonly servers: readonly string[]
  /** A credentials file of a NATS user (`NATS_CREDS_FILE`). */
  readonly credsFile?: string
  /** PEM files (`NATS_TLS_CA_FILE`, `NATS_TLS_CERT_FILE`, `NATS_TLS_KEY_FILE`); any of them turns TLS on. */
  readonly tls?: {
    readonly caFile?: string
    readonly certFile?: string
    readonly keyFile?: string
  }
  /** On how many servers each message is stored: 1, 3 or 5 (`NATS_REPLICAS`). @default 1 */
  readonly replicas?: number
  /** Goes before every subject and stream of this broker, so that several can share a NATS account; letters, digits and `-`. @default 'signalbox' */
  readonly prefix?: string
  /** The largest message (body, metadata and tags together), in bytes; never above what the servers' `max_payload` allows. @default 67108864 */
  readonly maxMessageBytes?: number
  /** The most channels of all types together; the broker's own are neither counted nor refused (C4). 0 is no limit. @default 1000 */
  readonly maxChannels?: number
  /** The most messages one queue holds, delayed and leased ones included (C4). 0 is no limit. @default 0 */
  readonly queueMaxMessages?: number
  /** The most bytes of messages one queue holds, with some 200 for each message itself (C4). 0 is no limit. @default 0 */
  readonly queueMaxBytes?: number
  /** Entries of events stores older than this go, in milliseconds; a channel's own setting wins. 0 keeps all. @default 0 */
  readonly eventsStoreMaxAgeMs?: number
  /** The oldest entries of an events store go past this many bytes; a channel's own setting wins. 0 keeps all. @default 0 */
  readonly eventsStoreMaxBytes?: number
  /** Wait for the servers when none can be reached at the start, for as long as it takes; otherwise SERVERS_UNREACHABLE. @default true */
  readonly waitForServers?: boolean
  /** Ends the wait for the servers. */
  readonly signal?: AbortSignal
  /** How long a call waits for a lost connection to come back before it fails with ENGINE_UNAVAILABLE, in milliseconds. @default 2000 */
  readonly patienceMs?: number
  /** How long a call waits for an answer of the servers, in milliseconds. @default 5000 */
  readonly requestTimeoutMs?: number
  /** How long a delivery of a node that died stays out of reach, in milliseconds. Longer leases are kept all the same. @default 35000 */
  readonly ackWaitMs?: number
  /** How long servers from 2.11 on keep an expired message that no node removed, for who may still hold it, in milliseconds; they count whole seconds. @default 86400000 */
  readonly expiredKeptMs?: number
  /** Told when something is wrong or well again, for the log. Must not throw. */
  readonly onProblem?: (problem: NatsEngineProblem) => void
}

export interface NatsEngineProblem {
  /** `disconnected`: the connection is lost or was never there · `healed`: it is back · `warning`: it works, with less than was asked for · `listener`: a subscriber's listener threw · `failed`: something in the background did not work. */
  readonly kind: 'disconnected' | 'healed' | 'warning' | 'listener' | 'failed'
  readonly message: string
  readonly error?: unknown
}

/** The options with every default filled in. */
export interface Settings {
  readonly servers: readonly string[]
  readonly credsFile: string | undefined
  readonly tls: NatsEngineOptions['tls']
  readonly replicas: number
  readonly prefix: string
  readonly maxMessageBytes: number
  readonly maxChannels: number
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  readonly waitForServers: boolean
  readonly signal: AbortSignal | undefined
  readonly patienceMs: number
  readonly requestTimeoutMs: number
  readonly ackWaitMs: number
  readonly expiredKeptMs: number
  readonly onProblem: (problem: NatsEngineProblem) => void
}

/** @throws NatsEngineError OPTION_INVALID */
export function settingsOf(options: NatsEngineOptions): Settings {
  const { servers, prefix = 'signalbox', replicas = 1, tls } = options
  if (servers.length === 0) invalid('servers', 'none', 'at least one address, such as nats://127.0.0.1:4222')
  for (const server of servers) {
    if (!/^(?:(?:nats|tls):\/\/)?[^\s/]+$/.test(server)) {
      invalid('servers', JSON.stringify(withoutPassword(server)), 'addresses such as nats://127.0.0.1:4222')
    }
  }
  if (!/^[A-Za-z0-9-]{1,32}$/.test(prefix)) {
    invalid('prefix', JSON.stringify(prefix), '1 to 32 letters, digits and hyphens')
  }
  if (![1, 3, 5].includes(replicas)) invalid('replicas', String(replicas), '1, 3 or 5')
  if ((tls?.certFile === undefined) !== (tls?.keyFile === undefined)) {
    invalid('tls', 'one of certFile and keyFile', 'both or neither')
  }
  return {
    servers,
    credsFile: options.credsFile,
    tls,
    replicas,
    prefix,
    maxMessageBytes: whole('maxMessageBytes', options.maxMessageBytes, 64 * 1024 * 1024, 1),
    // The limit is always a number on the port; what cannot be reached is no limit.
    maxChannels: whole('maxChannels', options.maxChannels, DEFAULT_MAX_CHANNELS) || Number.MAX_SAFE_INTEGER,
    queueMaxMessages: whole('queueMaxMessages', options.queueMaxMessages, 0),
    queueMaxBytes: whole('queueMaxBytes', options.queueMaxBytes, 0),
    eventsStoreMaxAgeMs: whole('eventsStoreMaxAgeMs', options.eventsStoreMaxAgeMs, 0),
    eventsStoreMaxBytes: whole('eventsStoreMaxBytes', options.eventsStoreMaxBytes, 0),
    waitForServers: options.waitForServers ?? true,
    signal: options.signal,
    patienceMs: whole('patienceMs', options.patienceMs, 2_000),
    requestTimeoutMs: whole('requestTimeoutMs', options.requestTimeoutMs, 5_000, 100),
    ackWaitMs: whole('ackWaitMs', options.ackWaitMs, 35_000, 1_000),
    expiredKeptMs: whole('expiredKeptMs', options.expiredKeptMs, 86_400_000),
    onProblem: options.onProblem ?? (() => {}),
  }
}

function whole(name: string, value: number | undefined, byDefault: number, min = 0): number {
  const given = value ?? byDefault
  if (Number.isSafeInteger(given) && given >= min) return given
  return invalid(name, String(given), `a whole number of at least ${min}`)
}

function invalid(name: string, given: string, allowed: string): never {
  throw new NatsEngineError('OPTION_INVALID', `invalid option ${name}: ${given}; allowed is ${allowed}`)
}

/** An address as it may be shown. */
export function withoutPassword(server: string): string {
  return server.replace(/^((?:\w+:\/\/)?)[^@]*@/, '$1')
}
