import type { Implementation, InitializeResult } from '@modelcontextprotocol/sdk/types.js'

/** Who this server says it is. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly websiteUrl?: string
}

/** What one revision of MCP says differently from the others on the wire. */
export interface Revision {
  /** As it stands in `MCP-Protocol-Version`. */
  readonly version: string
  /** The server's name in the form this revision knows. */
  implementation(info: ServerInfo): Implementation
  /** Methods that a client calls with an id; without one they are refused (M4). */
  readonly requestMethods: ReadonlySet<string>
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
