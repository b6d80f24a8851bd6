import { readFileSync } from 'node:fs'

import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'
import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { ConnectorOptions, HttpRequest } from '@signalbox/http-kit'
import { anonymousAuthenticator, DEFAULT_MAX_BODY_BYTES, SSE_KEEPALIVE_MS } from '@signalbox/http-kit'
import { CONNECTOR_OPTION_TYPES, derivedLimits, readPublicUrl } from '@signalbox/http-kit/internal'
import type { AgentRegistry } from '@signalbox/registry'
import { AgentAddressPolicy } from '@signalbox/registry'

import type { CardKeys } from './cards/card-keys.ts'
import type { AgentRequests } from './requests/agent-requests.ts'
import type { PushSubscriptions } from './push/push-configurations.ts'
import type { StreamLimits } from './stream/limits.ts'

/** A call of an agent that has ended. */
export interface AgentCallEvent {
  /** The agent's id; `unknown` when no such agent is registered. */
  readonly agentId: string
  /** The ClientID of the caller; empty if the call ended before the agent was found. */
  readonly clientId: string
  readonly status: 'success' | 'error'
  /** The time until the answer began; for a stream, until it was open. */
  readonly firstByteSeconds: number
}

/** One finished request to an agent. */
export interface A2aRequestEvent extends AgentCallEvent {
  /** `message/send`, `message/stream`, `tasks/get`, `tasks/cancel`, `tasks/send`; any other is `unknown`. */
  readonly method: string
  /** Of an error: the gateway's JSON-RPC code as text, or `agent` for one of the agent's own. */
  readonly errorCode: string | undefined
  /** From the arrival of the headers until the answer was written; of a stream until its end. */
  readonly seconds: number
}

/** Called for every request, synchronously: they must be quick. Their errors are dropped. */
export interface A2aHooks {
  requestFinished?(event: A2aRequestEvent): void
  /** Reports a call through the directory of the connector, such as one by a tool of `/mcp`. */
  directoryCallFinished?(event: AgentCallEvent): void
  /** Reports a failure that no client gets, such as a bug or a failed subscription. For the log. @default one line on stderr */
  failed?(error: unknown, request?: HttpRequest): void
}

/** The name, version and description in the card at `/.well-known/agent-card.json`. */
export interface Platform {
  readonly name: string
  readonly version: string
  readonly description: string
}

export interface A2aConnectorOptions extends ConnectorOptions {
  /** The largest response of an agent, in bytes; at least 1, and never more than one message of the engine holds. @default 10485760 */
  readonly agentMaxResponseBytes?: number
  /**
   * The most calls and streams under way for one agent on this node, or for each of its instances; at least 1. @default
   * 100
   */
  readonly agentMaxConcurrency?: number
  /** Accepts certificates of agents without verification; for development only. @default false */
  readonly agentTlsSkipVerify?: boolean
  /** Certificates to trust in place of the system's, PEM. @default the system's */
  readonly agentCa?: string | readonly string[]
  /** A forward proxy that agents are called through, `http://[user:password@]host[:port]`. @default none */
  readonly agentProxyUrl?: string
  /**
   * The addresses at which agents may be called; pass the registry's policy. @default all but those
   * that are always refused
   */
  readonly addressPolicy?: AgentAddressPolicy
  /** Seconds without an event of the agent's after which a stream ends; 0 means never. @default 300 */
  readonly maxSseIdleSeconds?: number
  /** Milliseconds between comments on a stream; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /** Flow control of streams; `maxEventBytes` is `agentMaxResponseBytes`. @default the defaults of {@link StreamLimits} */
  readonly streamLimits?: Omit<StreamLimits, 'maxEventBytes'>
  /** Bytes that all relayed streams of the node together may hold on their way; at least 1. @default a sixteenth of the memory that the process may use, at most 67108864 */
  readonly streamBudgetBytes?: number
  /**
   * Serves the calls of the official A2A clients (`auto`), or only the gateway's own dialect (`off`).
   * @default 'auto'
   */
  readonly native?: 'auto' | 'off'
  /**
   * With authentication, a task belongs to the caller that began it. `records`: a task of which that is not recorded,
   * because the agent or an older version began it, is open to all callers; `strict`: to none; `off`: all tasks are.
   * @default 'records'
   */
  readonly taskIsolation?: 'records' | 'strict' | 'off'
  /**
   * Keeps the answers and the events of calls that have an `Idempotency-Key`, and of all calls to agents with
   * `a2a.durable`, in a log (`auto`), or none (`off`). @default 'auto'
   */
  readonly log?: 'auto' | 'off'
  /** `false` if no other node uses the engine: calls of a process that was killed are then continued at once. @default true */
  readonly shared?: boolean
  /** Seconds for which answers, events and idempotency keys are kept; at least 1. @default 86400 */
  readonly logSeconds?: number
  /** The most bytes of all answers and events that are kept; at least 1048576. @default 1073741824 */
  readonly logBytes?: number
  /** The most calls in progress on this node whose answers are kept; at least 1. @default 100000 */
  readonly maxRuns?: number
  /** The most calls of one caller in progress on this node whose answers are kept; 0 is no limit. @default 1000 */
  readonly maxRunsPerCaller?: number
  /** The card at `/.well-known/agent-card.json`. @default `signalbox` and this package's version */
  readonly platform?: Partial<Platform>
  /**
   * The agent whose card `/.well-known/agent-card.json` shows while it is registered, for clients that read a card
   * only at the root of a host. @default the platform's own card
   */
  readonly rootAgentId?: string
  /**
   * The server's URL for clients, such as `https://broker.example.com`, which cards name. An absolute http
   * or https URL without query, fragment and credentials. @default the scheme and host of each request
   */
  readonly publicUrl?: string
  /**
   * The keys that sign cards, from {@link openCardKeys}, and that `/.well-known/jwks.json` publishes. Cards
   * are signed only with `publicUrl`: otherwise a caller could have a card for another host signed.
   * @default none: the connector adds no such route
   */
  readonly cardKeys?: CardKeys
  /**
   * The webhooks by which the gateway sends push notifications of agents with `a2a.durable`, in place of the agents.
   * Needs `log`. @default agents send them
   */
  readonly push?: PushSubscriptions
  /** Reports finished requests and failures, for metrics and logs. @default none */
  readonly hooks?: A2aHooks
}

/** Options of the Fastify plugin alone, and those that have no default or another type when resolved. */
type Unresolved = 'drainMs' | 'runHostHooks' | 'platform' | Absent

type Absent = 'agentCa' | 'agentProxyUrl' | 'bindHost' | 'frontDoor' | 'publicUrl' | 'cardKeys' | 'push' | 'rootAgentId'

export type ResolvedA2aOptions = Required<Omit<A2aConnectorOptions, Unresolved>> &
  Pick<A2aConnectorOptions, Absent> & { readonly platform: Platform }

const OPTION_TYPES: OptionTypes<A2aConnectorOptions> = {
  ...CONNECTOR_OPTION_TYPES,
  agentMaxResponseBytes: 'number',
  agentMaxConcurrency: 'number',
  agentTlsSkipVerify: 'boolean',
  agentCa: 'texts',
  agentProxyUrl: 'text',
  addressPolicy: 'object',
  maxSseIdleSeconds: 'number',
  keepAliveMs: 'number',
  streamLimits: 'object',
  streamBudgetBytes: 'number',
  native: 'text',
  taskIsolation: 'text',
  log: 'text',
  shared: 'boolean',
  logSeconds: 'number',
  logBytes: 'number',
  maxRuns: 'number',
  maxRunsPerCaller: 'number',
  platform: 'object',
  rootAgentId: 'text',
  publicUrl: 'text',
  cardKeys: 'object',
  push: 'object',
  hooks: 'object',
}

/**
 * @throws RangeError for a number that is out of range, or a URL that clients cannot append to; TypeError for an unknown
 * option or another type
 */
export function resolveA2aOptions(options: A2aConnectorOptions, maxMessageBytes: number): ResolvedA2aOptions {
  checkOptions('a2aConnector', options, OPTION_TYPES)
  const resolved: ResolvedA2aOptions = {
    ...options,
    ...(options.publicUrl === undefined ? {} : { publicUrl: publicUrlOf(options.publicUrl) }),
    authenticator: options.authenticator ?? anonymousAuthenticator,
    trustedOrigins: options.trustedOrigins ?? 'auto',
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    agentMaxResponseBytes: Math.min(
      options.agentMaxResponseBytes ?? 10_485_760,
      maxMessageBytes - REPLY_OVERHEAD_BYTES,
    ),
    agentMaxConcurrency: options.agentMaxConcurrency ?? 100,
    agentTlsSkipVerify: options.agentTlsSkipVerify ?? false,
    maxSseIdleSeconds: options.maxSseIdleSeconds ?? 300,
    addressPolicy: options.addressPolicy ?? new AgentAddressPolicy(),
    keepAliveMs: options.keepAliveMs ?? SSE_KEEPALIVE_MS,
    streamLimits: options.streamLimits ?? {},
    streamBudgetBytes: options.streamBudgetBytes ?? derivedLimits().streamBytes,
    native: options.native ?? 'auto',
    taskIsolation: options.taskIsolation ?? 'records',
    log: options.log ?? 'auto',
    shared: options.shared ?? true,
    logSeconds: options.logSeconds ?? 86_400,
    logBytes: options.logBytes ?? 1_073_741_824,
    maxRuns: options.maxRuns ?? 100_000,
    maxRunsPerCaller: options.maxRunsPerCaller ?? 1_000,
    platform: {
      name: 'signalbox',
      version: packageVersion(),
      description:
        'A message broker for AI tools and agents. The agents that are registered here are listed at /agents.',
      ...options.platform,
    },
    hooks: options.hooks ?? {},
  }
  within('maxBodyBytes', resolved.maxBodyBytes, 1)
  within('agentMaxResponseBytes', resolved.agentMaxResponseBytes, 1)
  within('agentMaxConcurrency', resolved.agentMaxConcurrency, 1)
  within('maxSseIdleSeconds', resolved.maxSseIdleSeconds, 0, MAX_TIMER_MS / 1000)
  within('keepAliveMs', resolved.keepAliveMs, 0)
  within('logSeconds', resolved.logSeconds, 1, MAX_TIMER_MS / 1000)
  within('logBytes', resolved.logBytes, 1_048_576, Number.MAX_SAFE_INTEGER)
  within('maxRuns', resolved.maxRuns, 1)
  within('maxRunsPerCaller', resolved.maxRunsPerCaller, 0)
  within('streamBudgetBytes', resolved.streamBudgetBytes, 1, Number.MAX_SAFE_INTEGER)
  return resolved
}

/** The bytes of a reply in the engine's message, in addition to its body. */
const REPLY_OVERHEAD_BYTES = 1024
const MAX_TIMER_MS = 2_147_483_647

function within(option: string, value: number, min: number, max = MAX_TIMER_MS): void {
  if (value >= min && value <= max) return
  throw new RangeError(`${option}: ${value}; allowed is a number from ${min} to ${max}`)
}

function publicUrlOf(text: string): string {
  try {
    return readPublicUrl(text)
  } catch (error) {
    throw new RangeError(`publicUrl: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function packageVersion(): string {
  const manifest: { version?: unknown } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String(manifest.version)
}

/** The methods of the agent registry that the gateway uses. */
export type AgentLookup = Pick<AgentRegistry, 'authorization' | 'find' | 'get' | 'heartbeat' | 'list' | 'onChange'>

/** The broker, registry and transport that the gateway uses. */
export interface A2aDependencies {
  readonly broker: Broker
  /** The handle for the reserved channels. */
  readonly system: BrokerHandle
  readonly registry: AgentLookup
  readonly requests: AgentRequests
}
