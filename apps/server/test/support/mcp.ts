/** What a tool call came to. */
export interface ToolResult {
  readonly text: string
  readonly isError: boolean
  readonly structured: Record<string, unknown>
}

/** One JSON-RPC request to `/mcp`. */
export async function rpc(
  base: string,
  method: string,
  params: object,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const response = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return response.json()
}

/** Calls a tool over `/mcp`; a JSON-RPC error is thrown. */
export async function callTool(
  base: string,
  name: string,
  args: object,
  headers: Record<string, string> = {},
): Promise<ToolResult> {
  const answer = (await rpc(base, 'tools/call', { name, arguments: args }, headers)) as {
    result?: { content: { text: string }[]; isError: boolean; structuredContent?: Record<string, unknown> }
    error?: { message: string }
  }
  if (!answer.result) throw new Error(answer.error?.message ?? 'no JSON-RPC answer')
  const { content, isError, structuredContent = {} } = answer.result
  return { text: content[0]!.text, isError, structured: structuredContent }
}

/** The text of a `POST /mcp` that calls a tool. */
export function callText(name: string, args: object): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
  return `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
