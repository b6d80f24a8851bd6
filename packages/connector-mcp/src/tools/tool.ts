import type { BrokerHandle, PolicyAction, ResourceType } from '@signalbox/broker-core'

import type { AgentDirectory } from '../agent-directory.ts'

/** What a tool call is given beside its arguments. */
export interface ToolContext {
  /** The broker, bound to the verified caller. */
  readonly broker: BrokerHandle
  /** Aborted when nobody waits for the result any more: the client is gone, cancelled, or the server shuts down. */
  readonly signal: AbortSignal
  /** Aborted when the client is gone, though the call runs on: what was not begun for it need not be. */
  readonly callerGone: AbortSignal
  /** Headers that tie the call to its caller's trace; they go along to whoever is called on its behalf. */
  readonly traceContext: Readonly<Record<string, string>>
  /** Brokers that the call has come through before this one. */
  readonly hops: number
  /** Present when the agent tools are. */
  readonly agents?: AgentDirectory
  /** Whether the client asked for progress. */
  readonly wantsProgress: boolean
  /** Tells a client that asked for progress what the call is waiting for (M6). */
  progress(message: string): void
}

/** What a tool call came to; the protocol half makes the MCP tool result of it (M10). */
export interface ToolOutcome {
  readonly text: string
  /** A failure of the tool itself: HTTP and JSON-RPC still succeed (specification, "MCP tool result"). */
  readonly isError: boolean
  /** Matches the tool's `outputSchema`, unless `isError`. A string is its JSON text, sent as it is. */
  readonly structuredContent?: object | string
  /** For messages on lease: `commit` once the answer has reached the client, `rollback` when it could not (M14). */
  readonly settlement?: {
    commit(): Promise<void>
    rollback(): Promise<void>
  }
}

/** As `tools/list` shows it. */
export interface ToolDefinition {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly outputSchema: ObjectSchema
  readonly annotations: ToolAnnotations
}

/** A JSON Schema of an object, as MCP demands for inputs and outputs. */
export interface ObjectSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, object>>
  readonly required?: readonly string[]
  readonly additionalProperties?: unknown
}

export interface ToolAnnotations {
  /** Changes nothing. */
  readonly readOnlyHint: boolean
  /** May remove something; only meaningful when not read-only. */
  readonly destructiveHint: boolean
  /** Calling it again with the same arguments has no further effect. */
  readonly idempotentHint: boolean
  /** Reaches beyond the broker itself: subscribers, agents. */
  readonly openWorldHint: boolean
}

/** What a caller must be allowed for a tool to be of any use: the action, on a channel of one of the patterns (S4). */
export interface ToolNeed {
  readonly action: PolicyAction
  readonly patterns: readonly ResourceType[]
}

export interface Tool {
  readonly definition: ToolDefinition
  readonly needs: ToolNeed
  /** True when the call has a timeout or wait of its own, so that `ToolTimeoutSeconds` does not bound it (M13). */
  readonly ownTimeout: boolean
  /** What a client that goes away does to the call (M5). */
  readonly onDisconnect: 'cancel' | 'run-on'
  /**
   * Checks the arguments (M7) and does the work.
   * @throws JsonRpcError -32602 when the arguments are not what they must be; other errors are internal ones
   */
  call(args: unknown, context: ToolContext): Promise<ToolOutcome>
}
