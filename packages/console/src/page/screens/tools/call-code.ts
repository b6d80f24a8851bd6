/** The call of a tool as commands and programs that people can run. */

type Arguments = Readonly<Record<string, unknown>>

/** Returns the call for a shell. */
export function curlOf(url: string, name: string, args: Arguments): string {
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return [
    `curl -s ${url} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H 'accept: application/json, text/event-stream' \\`,
    `  -d ${quoted(JSON.stringify(request))}`,
  ].join('\n')
}

/** Returns a word for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Returns a program for the official MCP client of TypeScript. */
export function programOf(url: string, name: string, args: Arguments): string {
  return `import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'example', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)})))
const result = await client.callTool(${JSON.stringify({ name, arguments: args }, undefined, 2)})
console.log(result.content)
await client.close()`
}
