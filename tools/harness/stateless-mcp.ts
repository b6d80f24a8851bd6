/** A request of MCP revision 2026-07-28. */
export interface StatelessCall {
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
