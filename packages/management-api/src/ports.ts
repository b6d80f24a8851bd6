import type { Authorization, Broker, BrokerHandle, QueuePause, Routing, SettingsEntry } from '@signalbox/broker-core'
import type { WebhookSubscription } from '@signalbox/broker-core/ports'
import type { Settlement } from '@signalbox/http-kit'
import type { ArgumentProblem, GivenSchedule, GivenSettings, TextParts } from '@signalbox/http-kit/internal'

import type { AgentCallsPort, AgentInboxesPort, AgentsPort, ReplyHold, StreamsPort, WorkEvent } from './agent-ports.ts'

/** The ports through which other packages provide data to the management API. */

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
