/** The phase of a run in an inbox: parked, with a lessee, with its events, waiting for its caller, or over. */
export type ParkedPhase = 'stored' | 'delivered' | 'working' | 'waiting' | 'done'

/** The state of one run of an inbox: a task, with its messages. Times are in ms since the epoch. */
export interface ParkedRun {
  readonly run: string
  readonly agentId: string
  readonly callerId: string
  readonly contextId: string
  readonly phase: ParkedPhase
  /** The id of the queue item of the last message. Items with another id are dropped. */
  readonly item: string
  /** The sequence of the last event before the last message. */
  readonly start: number
  readonly createdAt: number
  /** The time at which a parked message is given up. */
  readonly expiresAt: number
  /** The number of times that the last message was leased. */
  readonly attempt: number
  /** The digest of the lessee's receipt. */
  readonly lease?: string | undefined
  /** True once the last message may have reached an agent that is called: it is not sent again. */
  readonly isSent?: boolean | undefined
  /** The id of the task at an agent that is called. */
  readonly agentTask?: string | undefined
  /** True once the caller has asked to cancel the task. */
  readonly cancel?: boolean | undefined
  /** The end that the gateway has decided for the task. */
  readonly outcome?: ParkedOutcome | undefined
}

/** An end of a task that its agent has not written itself. */
export interface ParkedOutcome {
  /** The state of A2A 1.0. */
  readonly state: 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED'
  readonly reason: 'DELIVERY_EXPIRED' | 'DELIVERY_FAILED' | 'REJECTED' | 'CANCELED'
  /** The reason in words. */
  readonly text: string
}

/** A state, and its position in the log. */
export interface KnownRun extends ParkedRun {
  readonly sequence: number
}
