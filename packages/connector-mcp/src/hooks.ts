import type { HttpRequest } from '@signalbox/http-kit'

/** The outcome of one HTTP request. */
export type McpOutcome =
  | 'success'
  /** A tool result with `isError`. */
  | 'tool_error'
  /** A JSON-RPC error. */
  | 'error'
  | 'unauthenticated'
  | 'origin_refused'
  /** A limit of the front door. */
  | 'limited'
  | 'cancelled'
  | 'disconnected'

export interface McpRequestEvent {
  /** A supported MCP method; `notification`, `GET` or `DELETE`; otherwise `unknown`. */
  readonly method: string
  /** The name of the tool, for a call of a known tool. */
  readonly tool: string | undefined
  readonly outcome: McpOutcome
  /** Time from the arrival of the headers to the end of the answer, in seconds; for GET, to the start of the stream. */
  readonly seconds: number
}

/** Callbacks on the message path. They must be quick; their errors are dropped. */
export interface McpHooks {
  requestFinished?(event: McpRequestEvent): void
  /**
   * Receives a failure that no client sees, such as a bug or a store that refused a settlement, for the log.
   * @default one line on stderr
   */
  failed?(error: unknown, request?: HttpRequest): void
}
