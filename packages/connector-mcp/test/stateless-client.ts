import { REVISION_2026_07_28 } from '../src/wire/2026-07-28.ts'
import type { Answer, McpHost } from './mcp-host.ts'

const { version } = REVISION_2026_07_28

/** The `_meta` that every request of 2026-07-28 carries. */
export const META = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export interface StatelessRequest {
  readonly body: object
  readonly headers: Record<string, string>
}

/** The members of `params`, without `_meta`. */
interface Params {
  readonly name?: string
  readonly [member: string]: unknown
}

interface Changes {
  readonly id?: unknown
  readonly meta?: object
  readonly headers?: Record<string, string>
}

/** A request of 2026-07-28 with the headers that repeat its parts. */
export function statelessRequest(
  method: string,
  params: Params = {},
  { id = 1, meta = {}, headers = {} }: Changes = {},
): StatelessRequest {
  return {
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...META, ...meta } } },
    headers: {
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': version,
      'Mcp-Method': method,
      ...(params.name === undefined ? {} : { 'Mcp-Name': params.name }),
      ...headers,
    },
  }
}

/** Sends a request of 2026-07-28. */
export function ask(host: McpHost, method: string, params: Params = {}, changes: Changes = {}): Promise<Answer> {
  const { body, headers } = statelessRequest(method, params, changes)
  return host.post(body, headers)
}

/** Calls a tool by a request of 2026-07-28. */
export function callTool(host: McpHost, name: string, args: object, changes: Changes = {}): Promise<Answer> {
  return ask(host, 'tools/call', { name, arguments: args }, changes)
}
