/**
 * The server's name and version: the `Implementation` of the MCP specification. Each revision sends the fields that
 * it defines.
 */
export interface ServerInfo {
  /** For programs. */
  readonly name: string
  readonly version: string
  /** For people. Sent from revision 2025-06-18 on. */
  readonly title?: string
  /** Sent from revision 2025-11-25 on. */
  readonly description?: string
  /** Sent from revision 2025-11-25 on. */
  readonly websiteUrl?: string
}

/** The parts of the protocol that differ between revisions of MCP. */
export interface Revision {
  /** The value of `MCP-Protocol-Version`. */
  readonly version: string
  /** Returns the server's name in the form of this revision. */
  implementation(info: ServerInfo): ServerInfo
  /** Methods that need an id. Without one they are rejected. */
  readonly requestMethods: ReadonlySet<string>
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
