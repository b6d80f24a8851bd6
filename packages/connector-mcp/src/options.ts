import { readFileSync } from 'node:fs'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { ConnectorOptions } from '@signalbox/http-kit'
import type { OptionRules, Resolved } from '@signalbox/http-kit/internal'
import { SSE_KEEPALIVE_MS } from '@signalbox/http-kit'
import { CONNECTOR_OPTIONS, MAX_TIMER_MS, resolveOptions } from '@signalbox/http-kit/internal'

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
  /** The most open GET streams; 0 means no limit. @default 1000 */
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
  readonly agents?: AgentDirectory | undefined
  /**
   * The tasks of revision 2026-07-28: calls that wait for long continue in the background. Without this option calls
   * never become tasks.
   * @default none
   */
  readonly tasks?: TaskOptions | undefined
  /**
   * The extension Events of revision 2026-07-28: clients poll, stream and subscribe to the messages of channels. The
   * extension is not settled, so its methods can change. The value is that of `mcpEvents` of the entry `./events`.
   * @default none
   */
  readonly events?: McpEvents | undefined
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
  readonly oauth?: McpOAuthOptions | undefined
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
  readonly responders?: BrokerHandle | undefined
  /**
   * `true` adds the tools `inbox_take` and `inbox_reply`, if `agents` has inboxes.
   * @default false
   */
  readonly inboxTools?: boolean
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

const HOOKS: McpHooks = {}

const OPTIONS = {
  ...CONNECTOR_OPTIONS,
  path: { type: 'text', default: '/mcp' },
  maxStreams: { type: 'number', default: 1000, min: 0 },
  toolTimeoutSeconds: { type: 'number', default: 60, min: 0.001 },
  settleGraceMs: { type: 'number', default: 250, min: 0 },
  maxAnswerBytes: { type: 'number', default: DEFAULT_MAX_ANSWER_BYTES, min: 1 },
  keepAliveMs: { type: 'number', default: SSE_KEEPALIVE_MS, min: 0 },
  agents: { type: 'object' },
  tasks: { type: 'object' },
  events: { type: 'object' },
  stateKey: { type: 'function' },
  oauth: { type: 'object' },
  card: { type: 'object' },
  leases: { type: 'boolean', default: false },
  responders: { type: 'object' },
  inboxTools: { type: 'boolean', default: false },
  serverInfo: { type: 'object' },
  instructions: { type: 'text', default: INSTRUCTIONS },
  hooks: { type: 'object', default: HOOKS },
} as const satisfies OptionRules<McpConnectorOptions>

/** The options with their defaults. */
export interface ResolvedMcpOptions extends Omit<
  Resolved<McpConnectorOptions, typeof OPTIONS>,
  'tasks' | 'responders' | 'stateKey' | 'serverInfo'
> {
  readonly tasks: ResolvedTaskOptions | undefined
  readonly responders: Responders | undefined
  readonly stateKey: NonNullable<McpConnectorOptions['stateKey']>
  readonly serverInfo: NonNullable<McpConnectorOptions['serverInfo']>
}

/** @throws RangeError for a number that is out of range, TypeError for an unknown option or another type */
export function resolveMcpOptions(given: McpConnectorOptions): ResolvedMcpOptions {
  const { tasks, responders, stateKey, serverInfo, ...options } = resolveOptions('mcpConnector', given, OPTIONS)
  const resolved: ResolvedMcpOptions = {
    ...options,
    tasks: tasks && resolveTaskOptions(tasks),
    responders: responders && new Responders(responders),
    stateKey: stateKey ?? randomStateKey(),
    serverInfo: serverInfo ?? { name: 'signalbox', version: packageVersion(), title: 'Signalbox' },
  }
  if (options.events !== undefined && !(options.events instanceof McpEvents)) {
    throw new TypeError(
      'mcpConnector: events: the value is not allowed; allowed: the result of mcpEvents() of @signalbox/connector-mcp/events',
    )
  }
  if (resolved.tasks !== undefined) checkTaskOptions(resolved.tasks)
  return resolved
}

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
