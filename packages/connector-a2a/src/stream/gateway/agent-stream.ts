import type { OutgoingHttpHeaders } from 'node:http'

import type { RequestHold } from '@signalbox/http-kit'
import type { HttpResponse } from '@signalbox/http-kit'

import type { StreamEvent } from './recent-events.ts'

/** The client's settings for a stream. */
export interface PipeOptions {
  /** Headers to send in addition to the SSE headers. */
  readonly headers?: OutgoingHttpHeaders
  /** Time between keepalive comments, in ms. @default 30000 */
  readonly keepAliveMs?: number
  /**
   * Time without an event of the agent after which the stream ends, in ms (MaxSSEIdleSeconds); 0 is
   * never.
   */
  readonly idleMs: number
  /**
   * The time at which the caller's token expires, in ms since the epoch. The stream ends then.
   * @default never
   */
  readonly endsAt?: number
  /** Counts the bytes that the client has not read, and those of an event that is being joined. @default no counting */
  readonly hold?: Pick<RequestHold, 'setUnread' | 'charge' | 'discharge'>
}

/** The end of a stream, for its client. */
export interface StreamEnd {
  /**
   * `done` or `error` after that terminal event; `disconnected` if the client left before it was
   * delivered.
   */
  readonly outcome: 'done' | 'error' | 'disconnected'
  /** The code of a `task.error` that Signalbox raised; absent if the error is the agent's own. */
  readonly errorCode?: number
}

/** A stream that an agent has opened, waiting for its client's response. */
export interface AgentStream {
  readonly streamId: string
  /**
   * Answers with the agent's events; it owns the response from now on. Resolves when the response
   * is over. Rejects only for a bug, after it has cut off the response. Call it once and at once,
   * even if the client has disconnected.
   */
  pipeTo(response: HttpResponse, options: PipeOptions): Promise<StreamEnd>
  /** The frames that were written to the client. */
  readonly written: number
  /** The last events that were written to the client, oldest first. */
  readonly recentEvents: readonly StreamEvent[]
  /** The time since the last frame, or since the stream began, in ms. */
  readonly quietMs: number
  /** Ends the stream with a `task.error` because an operator cancels it. Idempotent. */
  interrupt(): void
  /** Ends the stream with a `task.error` because it took longer than its caller allowed. Idempotent. */
  expire(): void
  /** Ends the stream with a `task.error` because the node shuts down. Idempotent. */
  close(): void
  /**
   * Ends the stream with a `task.error` because the policy no longer allows its caller to call the
   * agent. Idempotent.
   */
  revoke(): void
}
