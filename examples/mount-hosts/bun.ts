// Messaging tools at /mcp of a server of Bun. PORT is its port, STORE_PATH the folder of the store.
import { createBroker } from '@signalbox/broker-core'
import { createMcpFetchHandler } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

/** The part of Bun that this program uses; `@types/bun` has all. */
interface BunServer {
  readonly url: URL
  requestIP(request: Request): { readonly address: string } | null
  stop(closeConnections: boolean): Promise<void>
}

interface BunOptions {
  readonly port: number
  readonly hostname: string
  readonly idleTimeout: number
  fetch(request: Request, server: BunServer): Response | Promise<Response>
}

declare const Bun: { serve(options: BunOptions): BunServer }

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const mcp = createMcpFetchHandler(createBroker(engine).broker)

const server = Bun.serve({
  port: Number(PORT),
  hostname: '127.0.0.1',
  // Bun closes connections after 10 s without bytes; a call may wait for longer.
  idleTimeout: 0,
  fetch(request, server) {
    if (new URL(request.url).pathname !== '/mcp') return new Response('not found', { status: 404 })
    return mcp(request, { clientAddress: server.requestIP(request)?.address })
  },
})
console.log(`listening on ${server.url.origin}`)

async function close(): Promise<void> {
  await mcp.close()
  await server.stop(true)
  await engine.close()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void close())
