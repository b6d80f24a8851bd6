import type { OutgoingHttpHeaders } from 'node:http'

import type { HttpResponse, Identity, RequestHold } from '@signalbox/http-kit'

import type { ReadAgentCalls } from './history/histories.ts'

/** The ports through which the gateway and the registry provide agents, their streams and inboxes to the management API. */

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

/** One change in the work on a task, or one event of a stream. */
export interface WorkEvent {
  /** In ms since the epoch. */
  readonly at: number
  readonly event: string
  readonly detail?: string
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
export type ReplyHold = Pick<RequestHold, 'account' | 'charge' | 'discharge' | 'refusesBody'>

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
