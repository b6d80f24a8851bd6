import type { JsonObject } from '@signalbox/http-kit'

import type { AgentCard } from '../card/agent-card.ts'

/** The options of {@link AgentInbox.lease}. */
export interface InboxLeaseOptions {
  /** The maximum number of items, 1 to 32. */
  readonly max: number
  /** The time to wait for the first item, in ms; 0 does not wait. */
  readonly waitMs: number
  /** The time for which the items are leased, in ms. */
  readonly leaseMs: number
  /** Ends the wait: the client has disconnected, or the server shuts down. */
  readonly signal: AbortSignal
}

/** The input of {@link AgentInbox.events}. */
export interface InboxEventsInput {
  /** The receipt of the lease. */
  readonly receipt: string
  /**
   * The number of events of this delivery that were accepted before these, so that a repeated call changes nothing.
   * @default the number of accepted events: a repeated call adds its events again
   */
  readonly offset?: number
  /** StreamResponses of A2A 1.0; none only extends the lease. */
  readonly events: readonly JsonObject[]
  /** The new time of the lease, in ms. @default the time of the lease */
  readonly leaseMs?: number
}

/** The result of {@link AgentInbox.events}. */
export interface InboxEventsResult {
  /** The number of events of this delivery that are accepted now. */
  readonly accepted: number
  /** `true` if a caller has canceled the task. */
  readonly cancelRequested: boolean
  /** The end of the lease, in ms since the epoch. */
  readonly leaseUntil: number
}

/** The input of {@link AgentInbox.nack}. */
export interface InboxNackInput {
  /** The receipt of the lease. */
  readonly receipt: string
  /** The time until the next delivery, in ms. @default 0 */
  readonly delayMs?: number
  /** Ends the task as failed instead of delivering the request again. @default false */
  readonly reject?: boolean
  /** The reason, for the caller and the log. */
  readonly reason?: string
}

/** The depth of an inbox. */
export interface InboxStatus {
  /** The number of requests that wait. */
  readonly waiting: number
  /** The number of requests that are leased. */
  readonly inFlight: number
  /** The age of the oldest request that waits, in seconds; 0 if none waits. */
  readonly oldestSeconds: number
}

/** A leased request. */
export interface InboxItem {
  /** Names the lease in later calls. */
  readonly receipt: string
  /** The id of the task, which the gateway has given to the caller. */
  readonly taskId: string
  /** The id of the task's context. */
  readonly contextId: string
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** The end of the lease, in ms since the epoch. */
  readonly leaseUntil: number
  /** The verified ClientID of the caller. */
  readonly callerId: string
  /** The headers that a called agent would get. */
  readonly headers: Readonly<Record<string, string>>
  /** A SendMessageRequest of A2A 1.0. */
  readonly request: JsonObject
}

/**
 * The inboxes of agents, as the routes use them. The gateway implements them. The routes have checked the input, the
 * caller, and that the agent of the card has an inbox.
 */
export interface AgentInbox {
  /** Leases requests. Resolves with none, or rejects with the signal's reason, when the signal is aborted. */
  lease(card: AgentCard, options: InboxLeaseOptions): Promise<readonly InboxItem[]>
  /**
   * Appends events to the run of a leased request. An interrupted or terminal state settles the request.
   * @throws InboxError
   */
  events(card: AgentCard, input: InboxEventsInput): Promise<InboxEventsResult>
  /**
   * Returns a leased request for another delivery, or rejects it.
   * @throws InboxError
   */
  nack(card: AgentCard, input: InboxNackInput): Promise<void>
  /** Counts the requests in the inbox. */
  status(card: AgentCard): Promise<InboxStatus>
}

/** The codes of {@link InboxError}: 409, except 400 for EVENT_INVALID. */
export type InboxErrorCode = 'LEASE_LOST' | 'RUN_ENDED' | 'OFFSET_WRONG' | 'EVENT_INVALID'

/** The refusal of a call with a receipt. The routes answer with its code and message. */
export class InboxError extends Error {
  override readonly name = 'InboxError'
  readonly code: InboxErrorCode

  constructor(code: InboxErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
