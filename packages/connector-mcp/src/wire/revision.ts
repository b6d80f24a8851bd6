/** The server's name and version: the `Implementation` of the MCP specification. Each revision sends the fields that it knows. */
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
  /** The server's name in the form this revision knows. */
  implementation(info: ServerInfo): ServerInfo
  /** Methods that a client calls with an id; without one they are refused (M4). */
  readonly requestMethods: ReadonlySet<string>
}

/** The `InitializeResult` of the MCP specification, of a server that has tools and nothing else. */
export interface InitializeResult {
  readonly protocolVersion: string
  readonly capabilities: { readonly tools: object }
  readonly serverInfo: ServerInfo
  readonly instructions: string
  readonly _meta: { readonly sessionId: string }
}

/** The result of `initialize` in all revisions that have it. The session id is for clients that cannot read headers. */
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
