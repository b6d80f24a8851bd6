import type { BrokerHandle, PolicyAction, ResourceType } from '@signalbox/broker-core'
import type { JsonObject, RequestHold } from '@signalbox/http-kit'
import { LONG_TEXT_BYTES, TextParts } from '@signalbox/http-kit/internal'

import type { AgentDirectory } from '@signalbox/broker-core/ports'

/** The context of a tool call, in addition to its arguments. */
export interface ToolContext {
  /** The broker handle of the verified caller. */
  readonly broker: BrokerHandle
  /** The size of a text after which no further message is added, in bytes. */
  readonly maxAnswerBytes: number
  /** Aborted when the result is not needed any more: the client disconnected or canceled, or the server shuts down. */
  readonly signal: AbortSignal
  /**
   * Aborted when the client disconnected although the call continues. Steps that have not begun may then be skipped.
   */
  readonly callerGone: AbortSignal
  /** Trace headers of the call, forwarded to agents. */
  readonly traceContext: Readonly<Record<string, string>>
  /** `true` if the call is recorded in a trace, and its calls of agents too. @default false */
  readonly traced?: boolean
  /** Number of brokers that the call passed before this one. */
  readonly hops: number
  /** Counts the bytes that the call holds until its answer is written. */
  readonly hold?: Pick<RequestHold, 'account' | 'charge' | 'discharge' | 'refusesBody'> | undefined
  /**
   * The source text of the argument `params`, whose content is free. It is there when the tool is called, and not when
   * it has begun to wait.
   * @default none
   */
  readonly freeFormText?: string | undefined
  /** Present if the server has the agent tools. */
  readonly agents?: AgentDirectory | undefined
  /** `true` if the client asked for progress. */
  readonly wantsProgress: boolean
  /** Reports progress to a client that asked for it. */
  progress(message: string): void
  /**
   * Lets the call become a task if its answer takes long. Returns `false` if it cannot.
   * @param state The notes with which {@link TaskHandling} can continue or cancel the call. @default none
   */
  allowTask(state?: JsonObject): boolean
  /** `true` if the outcome of the call may ask the client for input ({@link ToolOutcome.input}). */
  readonly mayAsk: boolean
}

/** The outcome of a tool call, which the connector converts to an MCP tool result. */
export interface ToolOutcome {
  readonly text: string | TextParts
  /** A note for the model that is not a part of the result, such as how to get the rest of a list. @default none */
  readonly hint?: string | undefined
  /** A failure of the tool. HTTP and JSON-RPC still succeed. */
  readonly isError: boolean
  /** Content that matches the tool's `outputSchema`, unless `isError`. JSON text is sent unchanged. */
  readonly structuredContent?: object | string | TextParts
  /** The action that the policy allows and the caller's credentials do not. The tool had no effect. */
  readonly missing?: PolicyAction
  /** The settlement of leased messages: `commit` after the answer reached the client, `rollback` if it did not. */
  readonly settlement?: {
    commit(): Promise<void>
    rollback(): Promise<void>
  }
  /** The input that the call needs to continue. Without it the rest of the outcome is the result. */
  readonly input?: InputNeeded
}

/** The input that a call needs from its client. Only calls with {@link ToolContext.mayAsk} ask for input. */
export interface InputNeeded {
  /** Requests of MCP to the client, such as `elicitation/create`, by a name that the tool chooses. */
  readonly requests: Readonly<Record<string, JsonObject>>
  /** The notes with which {@link TaskHandling} continues the call. */
  readonly state: JsonObject
}

/** The parts of a tool whose calls can ask for input, and become tasks. Each node can run them. */
export interface TaskHandling {
  /**
   * Continues a call.
   * @param answers The client's answers by the names of the requests
   */
  resume(state: JsonObject, answers: Readonly<Record<string, JsonObject>>, context: ToolContext): Promise<ToolOutcome>
  /** Informs the party that works on the call that its client has cancelled it. */
  cancel(state: JsonObject, context: ToolContext): Promise<void>
}

/** A tool in the result of `tools/list`. */
export interface ToolDefinition {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly outputSchema: ObjectSchema
  readonly annotations: ToolAnnotations
}

/** A JSON Schema of an object, as MCP requires for inputs and outputs. */
export interface ObjectSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, object>>
  readonly required?: readonly string[]
  readonly additionalProperties?: unknown
}

/** Hints for clients about the effects of a tool (MCP, "Tool annotations"). */
export interface ToolAnnotations {
  /** `true` if the tool changes nothing. */
  readonly readOnlyHint: boolean
  /** `true` if the tool may remove something. Only meaningful if it is not read-only. */
  readonly destructiveHint: boolean
  /** `true` if a repeated call with the same arguments has no further effect. */
  readonly idempotentHint: boolean
  /** `true` if the tool reaches subscribers or agents. */
  readonly openWorldHint: boolean
}

/** The permission that a caller needs for the tool to be useful: the action, on a channel of one of the patterns. */
export interface ToolNeed {
  readonly action: PolicyAction
  readonly patterns: readonly ResourceType[]
}

/** A tool as the connector calls it. */
export interface Tool {
  readonly definition: ToolDefinition
  readonly needs: ToolNeed
  /** `true` if the call has its own timeout or wait, so that `ToolTimeoutSeconds` does not apply. */
  readonly ownTimeout: boolean
  /** The effect of a disconnected client on the call. */
  readonly onDisconnect: 'cancel' | 'run-on'
  /** @default calls never ask for input, and cancelling their tasks only ends the wait */
  readonly onTask?: TaskHandling | undefined
  /**
   * Checks the arguments and runs the tool.
   * @throws JsonRpcError -32602 for invalid arguments, before it returns a promise
   */
  call(args: unknown, context: ToolContext): Promise<ToolOutcome>
}

/** Returns the members of an MCP tool result as JSON text. A long text stays in parts, which are escaped later. */
export function resultMembers({ text, hint, isError, structuredContent }: ToolOutcome): string | TextParts {
  const more = hint === undefined ? '' : `,{"type":"text","text":${JSON.stringify(hint)}}`
  const rest = `${more}],"isError":${isError}`
  if (typeof text === 'string' && text.length < LONG_TEXT_BYTES && !(structuredContent instanceof TextParts)) {
    return `"content":[{"type":"text","text":${JSON.stringify(text)}}${rest}${structuredMember(structuredContent)}`
  }
  const parts = new TextParts().add('"content":[{"type":"text","text":').addQuoted(text).add(`}${rest}`)
  return structuredContent instanceof TextParts
    ? parts.add(',"structuredContent":').add(structuredContent)
    : parts.add(structuredMember(structuredContent))
}

function structuredMember(content: object | string | undefined): string {
  if (content === undefined) return ''
  return `,"structuredContent":${typeof content === 'string' ? content : JSON.stringify(content)}`
}
