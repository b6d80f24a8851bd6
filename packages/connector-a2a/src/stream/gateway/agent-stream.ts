import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { RequestHold } from '@signalbox/http-kit'

/** What a stream needs to know of its client. */
export interface PipeOptions {
  /** Sent beside the SSE headers. */
  readonly headers?: OutgoingHttpHeaders
  /** Milliseconds between keepalive comments. @default 30000 */
  readonly keepAliveMs?: number
  /** Milliseconds without an event of the agent's after which the stream ends (MaxSSEIdleSeconds); 0 is never. */
  readonly idleMs: number
  /** When the caller's token expires, milliseconds since the epoch (S9). @default never */
  readonly endsAt?: number
  /** Counts what the client has not taken. @default nothing is counted */
  readonly hold?: Pick<RequestHold, 'setUnread'>
}

/** How a stream ended for its client. */
export interface StreamEnd {
  /** By `task.done`, by `task.error`, or by the client that went away before it had either. */
  readonly outcome: 'done' | 'error' | 'disconnected'
  /** The code of a `task.error` that Signalbox made; left out when the error is the agent's own (A14). */
  readonly errorCode?: number
}

/** A stream that an agent has opened, and that waits for its client's response. */
export interface AgentStream {
  readonly streamId: string
  /**
   * Answers with the agent's events, and owns the response from here. It resolves when the response is over, and
   * rejects only for a bug, when it has cut the response off. To be called once and at once, also when the client is gone by now.
   */
  pipeTo(response: ServerResponse, options: PipeOptions): Promise<StreamEnd>
  /** Ends it politely with a `task.error`: the node shuts down. Idempotent. */
  close(): void
  /** Ends it with a `task.error`: the policy does not let its caller call the agent any more (S4). Idempotent. */
  revoke(): void
}
