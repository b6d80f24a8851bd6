/**
 * The server's name and version: the `Implementation` of the MCP specification. Each revision sends the fields that
 * it defines.
 */
export interface ServerInfo {
  /** For programs. */
  readonly name: string
  readonly version: string
  /** For people. Sent from revision 2025-06-18 on. */
  readonly title?: string | undefined
  /** Sent from revision 2025-11-25 on. */
  readonly description?: string
  /** Sent from revision 2025-11-25 on. */
  readonly websiteUrl?: string
}

/** The callers that may share a cached result: all, or only those with the same credentials. */
export type CacheScope = 'public' | 'private'

/** The kind of a result: the method's own result, a new task, or requests to the client, which then repeats the call. */
export type ResultType = 'complete' | 'task' | 'input_required'

/** The parts of the protocol that differ between revisions of MCP. */
export interface Revision {
  /** The value of `MCP-Protocol-Version`. */
  readonly version: string
  /** `true` if each request is independent: no `initialize`, sessions and GET. */
  readonly stateless: boolean
  /** Returns the server's name in the form of this revision. */
  implementation(info: ServerInfo): ServerInfo
  /** The methods that the server answers. */
  readonly methods: ReadonlySet<string>
  /** Methods that need an id. Without one they are rejected. */
  readonly requestMethods: ReadonlySet<string>
  /** The form of the answer to arguments that a tool rejects: a JSON-RPC error, or a tool result with `isError`. */
  readonly invalidArguments: 'error' | 'result'
  /** `true` if a client cancels a call by closing its response, for every tool that waits. */
  readonly closingCancels: boolean
  /**
   * Returns the HTTP status of an error code, for errors that set none.
   * @param malformed `true` if the message could not be read
   */
  statusOf(code: number, malformed: boolean): number
  /**
   * Returns a result as JSON text.
   * @param members The members of the result, as JSON text without the braces
   * @param serverInfo The server's name as JSON text
   * @param meta More members of `_meta`, as JSON text with a leading comma
   * @param type The value of `resultType`, for revisions that have it. @default 'complete'
   */
  result(members: string, serverInfo: string, meta?: string, type?: ResultType): string
  /** Returns the cache hints of a result, as members with a leading comma; empty if the revision has none. */
  cacheHints(scope: CacheScope): string
}

/** The `InitializeResult` of the MCP specification, for a server that has only tools. */
export interface InitializeResult {
  readonly protocolVersion: string
  readonly capabilities: { readonly tools: object }
  readonly serverInfo: ServerInfo
  readonly instructions: string
  readonly _meta: { readonly sessionId: string }
}

/** Returns the result of `initialize`. It has the session id for clients that cannot read headers. */
export function initializeResult(
  revision: Revision,
  info: ServerInfo,
  instructions: string,
  sessionId: string,
): InitializeResult {
  return {
    protocolVersion: revision.version,
    capabilities: { tools: {} },
    serverInfo: revision.implementation(info),
    instructions,
    _meta: { sessionId },
  }
}
