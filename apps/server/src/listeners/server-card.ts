import type { McpCardOptions } from '@signalbox/connector-mcp'

/** The name of the server in the MCP registry, and in the `mcpName` of its package. */
const REGISTRY_NAME = 'io.github.signalbox/signalbox'

/** Returns the options of the server card of `/mcp`. */
export function serverCard(publicUrl: string): McpCardOptions {
  return {
    name: REGISTRY_NAME,
    description: 'A message broker: queues, events, stored events, commands, queries and agents as tools.',
    ...(publicUrl === '' ? {} : { publicUrl }),
  }
}
