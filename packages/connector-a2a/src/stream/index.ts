import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentReply, AgentRequestOptions, AgentRequests } from '@signalbox/registry'

import type { StreamLimits } from './limits.ts'

export type { StreamLimits } from './limits.ts'

export interface OpenAgentStreamOptions {
  readonly system: BrokerHandle
  readonly requests: AgentRequests
  readonly agentId: string
  /** The JSON-RPC request that the agent gets, byte for byte. */
  readonly body: Uint8Array
  /** Caller, headers, timeout and signal; the stream's id is added. */
  readonly request: Omit<AgentRequestOptions, 'streamId' | 'acceptOnly'>
  readonly limits: StreamLimits
}

export interface PipeOptions {
  /** Sent beside the SSE headers. */
  readonly headers?: OutgoingHttpHeaders
  /** Milliseconds between keepalive comments. @default 30000 */
  readonly keepAliveMs?: number
  /** Milliseconds without an event of the agent's after which the stream ends (MaxSSEIdleSeconds); 0 is never. */
  readonly idleMs: number
  /** When the caller's token expires, milliseconds since the epoch (S9). @default never */
  readonly endsAt?: number
}

/** How a stream ended for its client. */
export interface StreamEnd {
  /** By `task.done`, by `task.error`, or by the client that went away before either. */
  readonly outcome: 'done' | 'error' | 'disconnected'
  /** The gateway's code of a `task.error` that the gateway made; left out when the error is the agent's own (A14). */
  readonly errorCode?: number
}

export interface AgentStream {
  readonly streamId: string
  /** Owns the response from here, and answers with the agent's events. Call it once, also when the client is gone by now. Never rejects. */
  pipeTo(response: ServerResponse, options: PipeOptions): Promise<StreamEnd>
  /** Ends it politely with `task.error`: the node shuts down. Idempotent. */
  close(): void
}

/** How a stream ended on the agent's side. */
export interface RelayEnd {
  /** The agent's response was aborted before its end: tell the agent `stream_cancel` (A10). */
  readonly cancelled: boolean
}

export interface RelayOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  /** The agent's response: 2xx, its body untouched. */
  readonly response: IncomingMessage
  readonly limits: StreamLimits
  /** One for all streams of the node. */
  readonly budget: NodeBudget
  /** Aborting it interrupts the stream: the node shuts down. */
  readonly signal?: AbortSignal
}

export class NodeBudget {
  /** @param limitBytes @default 67108864 */
  constructor(limitBytes = 67_108_864) {
    void limitBytes
  }
}

/** Resolves with `refused` when the agent's reply is no 2xx status; a 2xx reply means that the relay has begun. */
export declare function openAgentStream(
  options: OpenAgentStreamOptions,
): Promise<{ readonly refused: AgentReply } | { readonly stream: AgentStream }>

/** Resolves when the stream is over, with the agent's response ended or aborted. Never rejects. */
export declare function relayAgentStream(options: RelayOptions): Promise<RelayEnd>

/** Ends a stream on whichever node relays it. */
export declare function publishStreamCancel(system: BrokerHandle, streamId: string): Promise<void>
