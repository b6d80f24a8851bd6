import type { NatsEngine, NatsEngineOptions } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { onTestFinished } from 'vitest'

import { NatsServer } from '@signalbox/engine-nats/testing'

const opened: NatsEngine[] = []
const servers: NatsServer[] = []

/** Test files share this module, so a hook here would belong to the first file alone. */
async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((engine) => engine.close()))
  await Promise.all(servers.splice(0).map((server) => server[Symbol.asyncDispose]()))
}

/** A server of the test's own. */
export async function startServer(...options: Parameters<typeof NatsServer.start>): Promise<NatsServer> {
  const server = await NatsServer.start(...options)
  servers.push(server)
  onTestFinished(closeAll)
  return server
}

/** A node that is closed after the test. */
export async function openNode(
  server: Pick<NatsServer, 'url'>,
  options: Partial<NatsEngineOptions> = {},
): Promise<NatsEngine> {
  const engine = await openNatsEngine({ servers: [server.url], ...options })
  opened.push(engine)
  onTestFinished(closeAll)
  return engine
}
