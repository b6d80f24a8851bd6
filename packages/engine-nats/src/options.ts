import type { EngineOptions } from '@signalbox/broker-core/engine'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import {
  checkOptions,
  ENGINE_OPTION_TYPES,
  engineSettingsOf,
  messageOf,
  wholeOption,
} from '@signalbox/broker-core/internal'

import { NatsEngineError } from './errors.ts'
import { DEFAULT_MAX_CHANNELS } from './settings.ts'

/** The options of {@link openNatsEngine}. */
export interface NatsEngineOptions extends EngineOptions {
  /**
   * Addresses of one cluster, `nats://host:port` or `tls://host:port`, at least one (`NATS_SERVERS`). They
   * may contain user and password.
   */
  readonly servers: readonly string[]
  /** The path of a credentials file of a NATS user (`NATS_CREDS_FILE`). @default none */
  readonly credsFile?: string
  /**
   * Paths of PEM files (`NATS_TLS_CA_FILE`, `NATS_TLS_CERT_FILE`, `NATS_TLS_KEY_FILE`); any of them enables
   * TLS. `certFile` and `keyFile` must be set together. @default none
   */
  readonly tls?: {
    readonly caFile?: string
    readonly certFile?: string
    readonly keyFile?: string
  }
  /** The number of servers that store each message: 1, 3 or 5 (`NATS_REPLICAS`). @default 1 */
  readonly replicas?: number
  /**
   * The prefix of every subject and stream of this broker, so that several brokers can share a NATS account:
   * 1 to 32 letters, digits and `-`. @default 'signalbox'
   */
  readonly prefix?: string
  /**
   * The maximum size of a message (body, metadata and tags together), in bytes; at least 1. The servers'
   * `max_payload` may lower it. @default 67108864
   */
  readonly maxMessageBytes?: number
  /** The maximum number of channels, all types together; 0 means unlimited. @default 1000 */
  readonly maxChannels?: number
  /**
   * The maximum number of bytes in one queue; each message counts some 200 bytes more. 0 means no limit.
   * @default 0
   */
  readonly queueMaxBytes?: number
  /**
   * The time for which the position of a durable group is kept after its last subscriber left, in
   * milliseconds; at least 1000. Applies to groups that are new. @default 604800000
   */
  readonly durableGroupMs?: number
  /**
   * Waits without limit when no server can be reached at the start; `false` rejects with
   * SERVERS_UNREACHABLE. @default true
   */
  readonly waitForServers?: boolean
  /** The name and the version that the other nodes show for this one. @default empty */
  readonly node?: { readonly name: string; readonly version: string }
  /** Ends the wait for the servers when aborted. @default none */
  readonly signal?: AbortSignal
  /**
   * The time that a call waits for a lost connection before it fails with ENGINE_UNAVAILABLE, in
   * milliseconds; 0 does not wait. @default 2000
   */
  readonly patienceMs?: number
  /** The time that a call waits for an answer of the servers, in milliseconds; at least 100. @default 5000 */
  readonly requestTimeoutMs?: number
  /**
   * The time after which a delivery of a node that died is delivered again, in milliseconds; at least 1000.
   * Longer leases are kept until their end. @default 35000
   */
  readonly ackWaitMs?: number
  /**
   * The time for which servers from 2.11 on keep an expired message that no node removed, so that a client
   * that holds it can still settle it, in milliseconds; servers round it to whole seconds. 0 means until its
   * expiry. @default 86400000
   */
  readonly expiredKeptMs?: number
  /** Called when a problem starts or ends, for the log. Must not throw. @default none */
  readonly onProblem?: (problem: NatsEngineProblem) => void
}

export interface NatsEngineProblem {
  /**
   * `disconnected`: the connection is lost or was never opened · `healed`: a problem is over · `warning`:
   * the engine works with a restriction · `listener`: a subscriber's listener threw · `failed`: a background
   * task failed.
   */
  readonly kind: 'disconnected' | 'healed' | 'warning' | 'listener' | 'failed'
  readonly message: string
  readonly error?: unknown
}

/** The options with every default filled in. */
export interface Settings extends Required<Omit<NatsEngineOptions, 'credsFile' | 'tls' | 'signal'>> {
  readonly credsFile: string | undefined
  readonly tls: NatsEngineOptions['tls']
  readonly signal: AbortSignal | undefined
}

const OPTION_TYPES: OptionTypes<NatsEngineOptions> = {
  servers: 'texts',
  credsFile: 'text',
  tls: 'object',
  replicas: 'any',
  prefix: 'text',
  ...ENGINE_OPTION_TYPES,
  waitForServers: 'boolean',
  node: 'object',
  signal: 'any',
  patienceMs: 'any',
  requestTimeoutMs: 'any',
  ackWaitMs: 'any',
  expiredKeptMs: 'any',
  onProblem: 'any',
}

/**
 * Validates the options and fills in the defaults.
 * @throws NatsEngineError OPTION_INVALID
 */
export function settingsOf(options: NatsEngineOptions): Settings {
  try {
    return checked(options)
  } catch (error) {
    throw new NatsEngineError('OPTION_INVALID', messageOf(error), { cause: error })
  }
}

/** @throws TypeError, RangeError */
function checked(options: NatsEngineOptions): Settings {
  checkOptions('openNatsEngine', options, OPTION_TYPES, ['servers'])
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
    ...engineSettingsOf(options, { maxChannels: DEFAULT_MAX_CHANNELS }),
    servers,
    credsFile: options.credsFile,
    tls,
    replicas,
    prefix,
    waitForServers: options.waitForServers ?? true,
    node: options.node ?? { name: '', version: '' },
    signal: options.signal,
    patienceMs: wholeOption('patienceMs', options.patienceMs, 2_000),
    requestTimeoutMs: wholeOption('requestTimeoutMs', options.requestTimeoutMs, 5_000, 100),
    ackWaitMs: wholeOption('ackWaitMs', options.ackWaitMs, 35_000, 1_000),
    expiredKeptMs: wholeOption('expiredKeptMs', options.expiredKeptMs, 86_400_000),
    onProblem: options.onProblem ?? (() => {}),
  }
}

function invalid(name: string, given: string, allowed: string): never {
  throw new RangeError(`invalid option ${name}: ${given}; allowed is ${allowed}`)
}

/** Returns an address without user and password, for texts. */
export function withoutPassword(server: string): string {
  return server.replace(/^((?:\w+:\/\/)?)[^@]*@/, '$1')
}
