import type { Implementation, InitializeResult } from '@modelcontextprotocol/sdk/types.js'

/** The server's name and version in the result of `initialize`. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly websiteUrl?: string
}

/** The parts of the protocol that differ between revisions of MCP. */
export interface Revision {
  /** The value of `MCP-Protocol-Version`. */
  readonly version: string
  /** Returns the server's name in the form of this revision. */
  implementation(info: ServerInfo): Implementation
  /** Methods that need an id. Without one they are rejected. */
  readonly requestMethods: ReadonlySet<string>
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
