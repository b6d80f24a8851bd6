// Messaging tools as a route handler of Next.js: the file app/mcp/route.ts. STORE_PATH is the folder of the store.
import { createBroker } from '@signalbox/broker-core'
import type { McpFetchHandler } from '@signalbox/connector-mcp'
import { createMcpFetchHandler } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

async function open(): Promise<McpFetchHandler> {
  const engine = await openEmbeddedEngine({ path: process.env['STORE_PATH'] ?? './data' })
  const mcp = createMcpFetchHandler(createBroker(engine).broker)
  // Next.js ends after the last call, and a call can wait for messages for a minute.
  const close = (): void => void mcp.close().then(() => engine.close())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, close)
  return mcp
}

/** Development servers load this file again after each change, but only one engine can open the store. */
const shared: typeof globalThis & { signalboxMcp?: Promise<McpFetchHandler> } = globalThis

/** Opens the store with the first request: builds load this file too. */
async function serve(request: Request): Promise<Response> {
  shared.signalboxMcp ??= open()
  return (await shared.signalboxMcp)(request)
}

export { serve as DELETE, serve as GET, serve as POST }

export const runtime = 'nodejs'
export const dynamic = 'force-dynamic'
