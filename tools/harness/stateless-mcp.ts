/** A `tools/call` of MCP revision 2026-07-28. */
export interface StatelessCall {
  readonly json: string
  readonly headers: Readonly<Record<string, string>>
}

const VERSION = '2026-07-28'

/** Returns a `tools/call` as clients of revision 2026-07-28 send it. */
export function statelessCall(name: string, args: Readonly<Record<string, unknown>>): StatelessCall {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'harness', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return {
    json: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta } }),
    headers: { 'MCP-Protocol-Version': VERSION, 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
  }
}
