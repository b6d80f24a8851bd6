import type { OutgoingHttpHeaders } from 'node:http'

import type { Authorization, Broker, BrokerHandle, QueuePause, Routing, SettingsEntry } from '@signalbox/broker-core'
import type { WebhookSubscription } from '@signalbox/broker-core/ports'
import type { HttpResponse, Identity, RequestHold, Settlement } from '@signalbox/http-kit'
import type { ArgumentProblem, GivenSchedule, GivenSettings, TextParts } from '@signalbox/http-kit/internal'

import type { ReadAgentCalls } from './history/histories.ts'

/** The ports through which other packages provide data to the management API. */

/** An agent as operators see it. */
export interface AgentStatus {
  readonly agent_id: string
  readonly name: string
  readonly version: string
  readonly url: string
  /** The owner's ClientID; empty if the agent has no owner. */
  readonly registered_by: string
  /** In ms since the epoch, as {@link last_seen} is. */
  readonly registered_at: number
  readonly last_seen: number
  /**
   * The time of expiry without another heartbeat, in ms since the epoch; null if agents do not
   * expire.
   */
  readonly expires_at: number | null
  /** Requests under way from this node to the agent, including streams. */
  readonly in_flight: number
  /** True while an agent with an inbox is away: it stays registered. @default false */
  readonly offline?: boolean
  /** True if the answers and events of its calls are kept. @default false */
  readonly durable?: boolean
  /** `pull`: the agent leases all its requests; `offline`: they wait while it is away. @default none */
  readonly inbox?: 'pull' | 'offline' | undefined
  /** @default none, for an agent that was registered without instances */
  readonly instances?: readonly AgentInstanceStatus[]
  /** @default none, for an agent that sends heartbeats */
  readonly probe?: AgentProbe | undefined
}

/** The last probe of the card of an agent. */
export interface AgentProbe {
  /** In ms since the epoch. */
  readonly at: number
  /** The reason why the card could not be read or used; absent if it could. */
  readonly error?: string | undefined
}

/** An instance of an agent. The members mean the same as those of the agent. */
export type AgentInstanceStatus = Pick<
  AgentStatus,
  'url' | 'registered_at' | 'last_seen' | 'expires_at' | 'in_flight'
> & { readonly instance_id: string }

export interface AgentsPort {
  list(): readonly AgentStatus[] | Promise<readonly AgentStatus[]>
  /**
   * Removes the agent, or one instance of it, on behalf of an Admin; false if it is not registered.
   * @param instanceId @default the agent with all its instances
   */
  deregister(agentId: string, operator: Identity, instanceId?: string): Promise<boolean>
  /** Returns the card of an agent; undefined if it is not registered. @default no agent has a card */
  card?(agentId: string): object | undefined | Promise<object | undefined>
  /** Returns the requests to each agent since the start of this node, for the history. @default none */
  readonly calls?: ReadAgentCalls
}

/** A webhook subscription as operators see it. */
export type WebhookStatus = WebhookSubscription

/** The webhook subscriptions. Calls with an unknown id resolve with undefined. */
export interface WebhooksPort {
  list(): readonly WebhookStatus[]
  pause(id: string): Promise<WebhookStatus | undefined>
  resume(id: string): Promise<WebhookStatus | undefined>
  /** Sends a signed test message to the endpoint. `status` is absent without an answer. */
  test(id: string): Promise<{ readonly status?: number; readonly error?: string } | undefined>
  /** Replaces the secret by a generated one, and resolves with it. For a time, both sign deliveries. */
  rotateSecret(id: string): Promise<string | undefined>
  /** Delivers an events store from a sequence on. Rejects with ARGUMENT_INVALID for another source. */
  redeliver(id: string, sequence: number): Promise<WebhookStatus | undefined>
}

/** An entry of the channel settings that operators wrote. */
export interface StoredChannelSettings {
  readonly given: GivenSettings
  /** The number of the change that wrote it, for conditional changes. */
  readonly revision: number
  /** The ClientID of the operator who wrote it. */
  readonly changedBy: string
  /** In ms since the epoch. */
  readonly changedAt: number
}

/** The entries of the channel settings. The settings in force are those of the broker. */
export interface ChannelSettingsPort {
  entries(): readonly StoredChannelSettings[]
  /** The entries of the file, which operators cannot change. */
  readonly fromFile: readonly SettingsEntry[]
  /**
   * Writes an entry. Rejects with ARGUMENT_INVALID if there are too many, and with CONFLICT.
   * @param revision The revision that the entry must have; 0 if there must be none. @default any
   */
  set(given: GivenSettings, changedBy: string, revision?: number): Promise<StoredChannelSettings>
  /** Removes an entry; false if there is none. Rejects with CONFLICT. */
  remove(target: Pick<GivenSettings, 'type' | 'match'>, revision?: number): Promise<boolean>
}

/** The pauses of queues that operators and receivers made. Those in force are at the broker. */
export interface QueuePausesPort {
  /** Pauses a queue; replaces its pause. Resolves when that is in force on this node. */
  pause(queue: string, pause: QueuePause): Promise<void>
  /** Ends the pause of a queue; false if it has none. */
  resume(queue: string): Promise<boolean>
}

/** A schedule that operators wrote, with its results. All times are in ms since the epoch. */
export interface ScheduleStatus extends Omit<StoredChannelSettings, 'given'> {
  readonly given: GivenSchedule
  readonly record: {
    /** The number of due times that passed without a message. */
    readonly missed: number
    /** The last due time with a message, and the time of the message. */
    readonly sent?: { readonly time: number; readonly at: number } | undefined
    /** A due time that is tried again. */
    readonly failure?: { readonly time: number; readonly reason: string } | undefined
  }
  /** Returns the next due times. */
  readonly next: (count: number) => readonly number[]
}

export interface SchedulesPort {
  list(): readonly ScheduleStatus[]
  /** Returns every problem of a schedule. */
  problems(given: GivenSchedule): readonly ArgumentProblem[]
  /**
   * Writes a schedule without problems; undefined if another node has removed it since. Rejects with ARGUMENT_INVALID
   * if there are too many, and with CONFLICT.
   * @param revision The revision that the schedule must have; 0 if there must be none. @default any
   */
  set(given: GivenSchedule, changedBy: string, revision?: number): Promise<ScheduleStatus | undefined>
  /** Removes a schedule; false if there is none. Rejects with CONFLICT. */
  remove(id: string, revision?: number): Promise<boolean>
  /** Pauses or resumes a schedule; undefined if there is none. */
  setPaused(id: string, paused: boolean, changedBy: string): Promise<ScheduleStatus | undefined>
  /** Sends the message of a schedule now; undefined if there is no such schedule. Rejects with the error of the send. */
  trigger(id: string): Promise<{ readonly messageId: string } | undefined>
}

/** One setting of the host, with its effective value. */
export interface SettingStatus {
  /** The name in the configuration file, such as `http.port`. */
  readonly key: string
  /** The environment variable. */
  readonly env: string
  readonly group: string
  /** The effective value; `[hidden]` for a secret. */
  readonly value: SettingStatusValue
  readonly default: SettingStatusValue
  readonly origin: 'default' | 'file' | 'environment' | 'flag' | 'program'
  /** The origin with its name, such as `environment HTTP_PORT`. */
  readonly origin_detail: string
  readonly description: string
  /** The allowed values, in words. */
  readonly allowed: string
  /** The address of the documentation. */
  readonly documentation: string
}

export type SettingStatusValue = string | number | boolean | readonly string[]

/** A failed attempt to replace keys or a policy; the previous ones remain in force. */
export interface ReloadFailure {
  /** In ms since the epoch. */
  readonly at: number
  readonly reason: string
}

/** The authentication and the policy in force on this node. */
export interface SecurityStatus {
  readonly authentication: {
    /** True if the shared listener requires a token. */
    readonly shared: boolean
    /** True if the management listener requires a token. */
    readonly management: boolean
    /** The setting that names the keys; absent without authentication. */
    readonly keySource?: string | undefined
    readonly algorithms: readonly string[]
    readonly issuer: string
    readonly audience: readonly string[]
    /** True if scopes of tokens restrict their callers. */
    readonly oauth: boolean
    /** The time since which the keys are in force, in ms since the epoch. */
    readonly since: number
    readonly failure?: ReloadFailure | undefined
  }
  /** Absent without a policy: every caller may do everything. */
  readonly policy?: {
    readonly file: string
    readonly since: number
    readonly failure?: ReloadFailure | undefined
  }
  /** True for each listener with TLS, and with client certificates. */
  readonly tls: Readonly<Record<'shared' | 'management', { readonly enabled: boolean; readonly mutual: boolean }>>
}

/** The state of this node; the fields of `/ready`. */
export interface NodeStatus {
  readonly ready: boolean
  readonly healthy: boolean
  readonly node: string
  readonly version: string
  readonly engine: string
  readonly uptime_seconds: number
}

export interface MetricsPort {
  readonly contentType: string
  text(): Promise<string>
}

/** One change in the work on a task, or one event of a stream. */
export interface WorkEvent {
  /** In ms since the epoch. */
  readonly at: number
  readonly event: string
  readonly detail?: string
}

/** A task of `/mcp` as operators see it. Times are in ms since the epoch. */
export interface TaskStatus {
  readonly id: string
  readonly tool: string
  /** The ClientID of the caller. */
  readonly owner: string
  readonly status: string
  readonly statusMessage?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number
  /** Oldest first. */
  readonly events: readonly WorkEvent[]
}

export interface TasksPort {
  list(): readonly TaskStatus[]
  /** Cancels a task for its owner, and returns its state; undefined if there is no such task. */
  cancel(id: string): Promise<TaskStatus | undefined>
}

/** A stream of an agent to a client of this node. Times are in ms since the epoch. */
export interface StreamStatus {
  readonly id: string
  readonly agentId: string
  /** The ClientID of the caller. */
  readonly client: string
  readonly openedAt: number
  readonly lastEventAt?: number
  readonly eventCount: number
  /** The last events that were written to the client, oldest first; at most 20. */
  readonly events: readonly WorkEvent[]
}

export interface StreamsPort {
  list(): readonly StreamStatus[]
  /** Ends a stream; false if it is not open. */
  cancel(id: string): boolean
}

/** Counts the bytes of a reply until the answer with it is written. */
type ReplyHold = Pick<RequestHold, 'account' | 'charge' | 'discharge' | 'refusesBody'>

/** A call of an agent for an operator. */
export interface AgentCall {
  readonly agentId: string
  readonly operator: Identity
  readonly text: string
  /** The conversation that the message continues. @default a new one */
  readonly contextId?: string | undefined
  /** The time until the agent begins to answer, in ms. */
  readonly timeoutMs: number
  /** Ends the call when aborted, also after the answer began. A TimeoutError is reported as a time-out. */
  readonly signal: AbortSignal
  readonly hold: ReplyHold | undefined
}

/** The answer of an agent, as a stream of server-sent events. */
export interface AgentCallStream {
  /** The id of the stream. */
  readonly id: string
  /** Answers with the events of the agent, and resolves after the end. Call it once and at once. */
  pipeTo(
    response: HttpResponse,
    options: {
      readonly headers: OutgoingHttpHeaders
      /** Ends the stream, in ms since the epoch. @default never */
      readonly endsAt?: number
      /** Counts the bytes that the client has not read, and those of an event that is being joined. */
      readonly hold?: Pick<RequestHold, 'setUnread' | 'charge' | 'discharge'>
    },
  ): Promise<unknown>
}

/** The reason for which an agent did not answer. */
export interface AgentCallFailure {
  /** The JSON-RPC code with which the gateway answers other callers. */
  readonly rpcCode: number
  readonly message: string
}

export interface AgentCallsPort {
  /** Sends a text message to an agent. Resolves when the agent begins to answer; undefined if it is not registered. */
  open(call: AgentCall): Promise<AgentCallStream | AgentCallFailure | undefined>
}

/** The number of requests in the inbox of an agent. */
export interface AgentInboxStatus {
  readonly waiting: number
  /** The requests that the agent has leased. */
  readonly inFlight: number
  /** The age of the oldest request that waits; 0 if none waits. */
  readonly oldestSeconds: number
}

/** A task of an inbox. Times are in ms since the epoch. */
export interface AgentTaskStatus {
  readonly id: string
  readonly agentId: string
  /** The ClientID of the caller. */
  readonly callerId: string
  readonly contextId: string
  readonly phase: 'stored' | 'delivered' | 'working' | 'waiting' | 'done'
  /** The number of deliveries of the last message. */
  readonly attempt: number
  readonly createdAt: number
  /** The time at which its last message is given up if it still waits. */
  readonly expiresAt: number
  readonly cancelRequested: boolean
  /** The end that the server has decided, such as `DELIVERY_EXPIRED`. */
  readonly reason?: string | undefined
}

/** An event of a task that is kept. */
export interface AgentTaskEvent {
  readonly sequence: number
  /** The time at which it became durable, in ms since the epoch. */
  readonly at: number
  readonly kind: string
  /** The state of the task that the event names. */
  readonly state?: string | undefined
  /** The size of the payload, in bytes. */
  readonly size: number
  /** The beginning of the payload. */
  readonly payload: Uint8Array
}

export interface AgentInboxesPort {
  /** Returns the ids of the agents with an inbox. */
  ids(): readonly string[]
  /** Resolves with undefined for an agent without an inbox, as the other methods do. */
  status(agentId: string): Promise<AgentInboxStatus | undefined>
  /** Returns tasks, newest first; without `all` only those that are not over. `next` is the `after` of the next page. */
  tasks(
    agentId: string,
    options: { readonly all: boolean; readonly limit: number; readonly after?: string | undefined },
  ): Promise<
    | { readonly items: readonly AgentTaskStatus[]; readonly next: string | undefined; readonly total: number }
    | undefined
  >
  /** Cancels a task, or asks the agent to, and returns its state. */
  cancel(agentId: string, taskId: string): Promise<AgentTaskStatus | undefined>
  /** Returns the kept events of a task of any agent, or of a run by its id. Resolves with undefined if none are kept. */
  events(
    agentId: string,
    taskId: string,
    options: { readonly from?: number | undefined; readonly limit: number; readonly maxPayloadBytes: number },
  ): Promise<
    | {
        readonly run: string
        readonly callerId: string
        readonly firstSequence: number
        readonly items: readonly AgentTaskEvent[]
        /** `from` of the next page. */
        readonly next: number | undefined
        readonly isOver: boolean
      }
    | undefined
  >
}

/** A tool as MCP lists it. */
export interface ToolStatus {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: object
  readonly outputSchema: object
  readonly annotations: object
}

export interface ToolResult {
  readonly text: string | TextParts
  readonly isError: boolean
  readonly structured?: unknown
  /** The settlement of leased messages in the result. */
  readonly settlement?: Settlement | undefined
}

export interface ToolsPort {
  list(): readonly ToolStatus[]
  /**
   * Calls a tool with the broker of the operator; undefined if there is no such tool. Rejects with
   * ARGUMENT_INVALID for invalid arguments.
   */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    context: {
      readonly broker: BrokerHandle
      readonly signal: AbortSignal
      /** Counts the bytes that the call holds until its answer is written. */
      readonly hold: ReplyHold | undefined
    },
  ): Promise<ToolResult | undefined>
}

/** The services that exist once initialization has finished. */
export interface ManagementServices {
  readonly broker: Broker
  /** The handle for reserved channels, for the audit log's channel. */
  readonly system: BrokerHandle
  /** Absent if agents are turned off. */
  readonly agents?: AgentsPort | undefined
  /** The policy of the shared listener's callers. Absent if there is none. */
  readonly authorization?: Pick<Authorization, 'policy'> | undefined
  /** Absent without a routing table. */
  readonly routing?: Pick<Routing, 'table'> | undefined
  /** Absent if the host has none. */
  readonly channelSettings?: ChannelSettingsPort | undefined
  /** Absent if the host stores no pauses. */
  readonly queuePauses?: QueuePausesPort | undefined
  /** Absent if the host has none. */
  readonly schedules?: SchedulesPort | undefined
  /** Absent if webhooks are turned off. */
  readonly webhooks?: WebhooksPort | undefined
  /** Absent if calls of `/mcp` cannot become tasks. */
  readonly tasks?: TasksPort | undefined
  /** Absent if agents are turned off. */
  readonly streams?: StreamsPort | undefined
  /** Absent if agents are turned off. */
  readonly agentCalls?: AgentCallsPort | undefined
  /** Absent if agents are turned off, and if their answers are not kept. */
  readonly agentInboxes?: AgentInboxesPort | undefined
  /** Absent if `/mcp` is turned off. */
  readonly tools?: ToolsPort | undefined
}
