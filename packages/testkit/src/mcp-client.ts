import type { ConnectionOptions } from './http-connection.ts'
import { KeepAliveConnection, postBytes } from './http-connection.ts'

/** Returns the JSON-RPC text of a `tools/call`. */
export function toolCall(name: string, args: Readonly<Record<string, unknown>>, id: number | string = 1): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })
}

/** The parts of a tool's answer that the harnesses use. */
export interface ToolResult {
  readonly isError: boolean
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
}

interface ToolAnswer {
  readonly error?: { readonly code: number; readonly message: string }
  readonly result?: {
    readonly isError?: boolean
    readonly content?: readonly { readonly text?: string }[]
    readonly structuredContent?: Readonly<Record<string, unknown>>
  }
}

/** Reads the JSON-RPC answer to a `tools/call`; a JSON-RPC error throws. */
export function toolResult(body: string): ToolResult {
  const { error, result } = JSON.parse(body) as ToolAnswer
  if (error !== undefined || result === undefined) throw new ToolError(`JSON-RPC error: ${body.slice(0, 500)}`)
  return {
    isError: result.isError === true,
    text: result.content?.[0]?.text ?? '',
    structured: result.structuredContent ?? {},
  }
}

/** One MCP client on one keep-alive connection; one call at a time. */
export class McpClient {
  readonly #connection: KeepAliveConnection
  readonly #url: string
  readonly #headers: ConnectionOptions['headers']

  private constructor(connection: KeepAliveConnection, url: string, headers: ConnectionOptions['headers']) {
    this.#connection = connection
    this.#url = url
    this.#headers = headers
  }

  static async open(http: string, options: ConnectionOptions = {}): Promise<McpClient> {
    return new McpClient(await KeepAliveConnection.open(http, options), `${http}/mcp`, options.headers)
  }

  /** Rejects when the connection breaks, or with the tool's text when the tool fails. */
  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<ToolResult> {
    const { status, body } = await this.#connection.request(postBytes(this.#url, toolCall(name, args), this.#headers))
    if (status !== 200) throw new ToolError(`HTTP ${status}: ${body.toString().slice(0, 500)}`)
    const result = toolResult(body.toString())
    if (result.isError) throw new ToolError(result.text)
    return result
  }

  close(): void {
    this.#connection.close()
  }
}

/** The server answered, but not with a success. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}

/** A request of MCP revision 2026-07-28. */
interface StatelessCall {
  readonly json: string
  readonly headers: Readonly<Record<string, string>>
}

const VERSION = '2026-07-28'

const META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'harness', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Returns a `tools/call` as clients of revision 2026-07-28 send it. */
export function statelessCall(name: string, args: Readonly<Record<string, unknown>>): StatelessCall {
  const params = { name, arguments: args, _meta: META }
  return {
    json: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    headers: { 'MCP-Protocol-Version': VERSION, 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
  }
}

/** Returns the request by which a client finds out whether a server has the revision. */
export function discovery(): StatelessCall {
  return {
    json: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'server/discover', params: { _meta: META } }),
    headers: { 'MCP-Protocol-Version': VERSION, 'Mcp-Method': 'server/discover' },
  }
}
