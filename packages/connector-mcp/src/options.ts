import { readFileSync } from 'node:fs'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'
import type { ConnectorOptions } from '@signalbox/http-kit'
import {
  anonymousAuthenticator,
  CONNECTOR_OPTION_TYPES,
  DEFAULT_MAX_BODY_BYTES,
  SSE_KEEPALIVE_MS,
} from '@signalbox/http-kit'

import type { AgentDirectory } from './agent-directory.ts'
import { McpEvents } from './events/mcp-events.ts'
import type { McpHooks } from './hooks.ts'
import type { McpOAuthOptions } from './oauth.ts'
import type { StateKey } from './request-state.ts'
import { randomStateKey } from './request-state.ts'
import type { McpCardOptions } from './server-card.ts'
import type { ResolvedTaskOptions, TaskOptions } from './tasks/options.ts'
import { resolveTaskOptions } from './tasks/options.ts'
import { DEFAULT_MAX_ANSWER_BYTES } from './tools/answer-size.ts'
import { Responders } from './tools/responders.ts'
import type { ServerInfo } from './wire/revision.ts'

export interface McpConnectorOptions extends ConnectorOptions {
  /** The path of the endpoint in Fastify. The handler serves any path. @default '/mcp' */
  readonly path?: string
  /** The most open GET streams; 0 is no limit. @default 1000 */
  readonly maxStreams?: number
  /** Time limit of a tool that has no timeout or wait argument, in seconds; above 0. @default 60 */
  readonly toolTimeoutSeconds?: number
  /**
   * Time between an answer and the settlement of its messages, in ms; 0 settles as soon as the answer is written.
   * @default 250
   */
  readonly settleGraceMs?: number
  /**
   * The size of the text of a tool's result after which no further message is added, in bytes, at least 1. The first
   * message is always complete.
   * @default 262144
   */
  readonly maxAnswerBytes?: number
  /** Interval between comments on a stream, in ms; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /**
   * The agents of the four agent tools. Without a directory, these tools are absent.
   * @default none
   */
  readonly agents?: AgentDirectory
  /**
   * The tasks of revision 2026-07-28: calls that wait for long continue in the background. Without this option calls
   * never become tasks.
   * @default none
   */
  readonly tasks?: TaskOptions
  /**
   * The extension Events of revision 2026-07-28: clients poll, stream and subscribe to the messages of channels. The
   * extension is not settled, so its methods can change. The value is that of `mcpEvents` of the entry `./events`.
   * @default none
   */
  readonly events?: McpEvents
  /**
   * Returns the key of 32 bytes that signs the `requestState` of calls that wait for input. Nodes that serve the same
   * clients need the same key, such as that of `brokerStateKey(system)`. Called at the first such call.
   * @default a random key, so that only this endpoint can continue its calls
   */
  readonly stateKey?: StateKey
  /**
   * Makes the endpoint a protected resource of OAuth 2.1: requests without a valid token get HTTP 401, tokens without
   * the scope for a tool 403, and both name the metadata, which the plugin serves too. The authenticator must be one
   * with the option `oauth`.
   * @default none
   */
  readonly oauth?: McpOAuthOptions
  /**
   * Serves the server card at the path of the endpoint and `/server-card`, and the catalog of the host at
   * `/.well-known/ai-catalog.json`.
   * @default none
   */
  readonly card?: McpCardOptions
  /**
   * `true` adds `lease_seconds` to `queue_receive`, and the tools `queue_ack`, `queue_nack` and `queue_extend`.
   * @default false
   */
  readonly leases?: boolean
  /**
   * Adds the tools `request_serve`, `request_reply` and `events_store_wait`. The value is the handle `system` of
   * `createBroker`, which carries answers between nodes.
   * @default none
   */
  readonly responders?: BrokerHandle
  /** The name and version in the result of `initialize`, and in every result of 2026-07-28. @default `signalbox` and this package's version */
  readonly serverInfo?: ServerInfo
  /**
   * A description of the server for models, in the results of `initialize` and `server/discover`.
   * @default a description of the broker and its channels
   */
  readonly instructions?: string
  /** Callbacks for metrics and logs. @default none */
  readonly hooks?: McpHooks
}

const INSTRUCTIONS =
  'Signalbox is a message broker. A queue stores each message until one consumer receives it; events reach the current subscribers; ' +
  'an events store keeps its events in order, for repeated reads; commands and queries wait for the answer of one subscriber. ' +
  'A channel is created by its first use, and the same name may be used in each of the five types. A name has 1 to 255 bytes, usually words with dots such as orders.eu, ' +
  'and no wildcards. Use channel_list to see the existing channels; a read of another one returns nothing. Names that begin with _AGENTS_. belong to the broker. ' +
  'A message has a body, and optional metadata and tags. A body that is not UTF-8 text is returned as base64, with body_encoding. Large bodies are only in the text of a result. ' +
  'A result may have fewer messages or entries than requested: then more is true, and a second text says how to get the rest; cursor leads to the rest of a list.'

/** Options of the Fastify plugin, and options without a default. */
type Unresolved =
  | 'drainMs'
  | 'runHostHooks'
  | 'agents'
  | 'tasks'
  | 'events'
  | 'bindHost'
  | 'frontDoor'
  | 'oauth'
  | 'card'
  | 'responders'

export type ResolvedMcpOptions = Required<Omit<McpConnectorOptions, Unresolved>> &
  Pick<McpConnectorOptions, 'agents' | 'events' | 'bindHost' | 'frontDoor' | 'oauth' | 'card'> & {
    readonly tasks: ResolvedTaskOptions | undefined
    readonly responders: Responders | undefined
  }

const OPTION_TYPES: OptionTypes<McpConnectorOptions> = {
  ...CONNECTOR_OPTION_TYPES,
  path: 'text',
  maxStreams: 'number',
  toolTimeoutSeconds: 'number',
  settleGraceMs: 'number',
  maxAnswerBytes: 'number',
  keepAliveMs: 'number',
  agents: 'object',
  tasks: 'object',
  events: 'object',
  stateKey: 'function',
  oauth: 'object',
  card: 'object',
  leases: 'boolean',
  responders: 'object',
  serverInfo: 'object',
  instructions: 'text',
  hooks: 'object',
}

/** @throws RangeError for a number that is out of range, TypeError for an unknown option or another type */
export function resolveMcpOptions(given: McpConnectorOptions): ResolvedMcpOptions {
  checkOptions('mcpConnector', given, OPTION_TYPES)
  const { tasks, responders, ...options } = given
  const resolved: ResolvedMcpOptions = {
    ...options,
    tasks: tasks && resolveTaskOptions(tasks),
    responders: responders && new Responders(responders),
    path: options.path ?? '/mcp',
    authenticator: options.authenticator ?? anonymousAuthenticator,
    stateKey: options.stateKey ?? randomStateKey(),
    trustedOrigins: options.trustedOrigins ?? 'auto',
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    maxStreams: options.maxStreams ?? 1000,
    toolTimeoutSeconds: options.toolTimeoutSeconds ?? 60,
    settleGraceMs: options.settleGraceMs ?? 250,
    maxAnswerBytes: options.maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES,
    keepAliveMs: options.keepAliveMs ?? SSE_KEEPALIVE_MS,
    leases: options.leases ?? false,
    serverInfo: options.serverInfo ?? { name: 'signalbox', version: packageVersion(), title: 'Signalbox' },
    instructions: options.instructions ?? INSTRUCTIONS,
    hooks: options.hooks ?? {},
  }
  if (options.events !== undefined && !(options.events instanceof McpEvents)) {
    throw new TypeError(
      'mcpConnector: events: the value is not allowed; allowed: the result of mcpEvents() of @signalbox/connector-mcp/events',
    )
  }
  atLeast('maxBodyBytes', resolved.maxBodyBytes, 1)
  atLeast('maxStreams', resolved.maxStreams, 0)
  atLeast('toolTimeoutSeconds', resolved.toolTimeoutSeconds, 0.001)
  atLeast('settleGraceMs', resolved.settleGraceMs, 0)
  atLeast('maxAnswerBytes', resolved.maxAnswerBytes, 1)
  atLeast('keepAliveMs', resolved.keepAliveMs, 0)
  if (resolved.tasks !== undefined) checkTaskOptions(resolved.tasks)
  return resolved
}

const MAX_TIMER_MS = 2_147_483_647

function atLeast(option: string, value: number, min: number): void {
  if (value >= min && value <= MAX_TIMER_MS) return
  throw new RangeError(`${option}: ${value}; allowed is a number from ${min} to ${MAX_TIMER_MS}`)
}

function checkTaskOptions({
  afterMs,
  ttlMs,
  maxTasks,
  maxResultBytes,
  pollIntervalMs,
  leaseMs,
}: ResolvedTaskOptions): void {
  atLeast('tasks.afterMs', afterMs, 0)
  atLeast('tasks.ttlMs', ttlMs, 1)
  atLeast('tasks.maxTasks', maxTasks, 0)
  atLeast('tasks.maxResultBytes', maxResultBytes, 1024)
  atLeast('tasks.pollIntervalMs', pollIntervalMs, 1)
  atLeast('tasks.leaseMs', leaseMs, 1)
}

function packageVersion(): string {
  const manifest: { version?: unknown } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String(manifest.version)
}
