import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { randomBytes } from 'node:crypto'

/** Streams and subjects that no other engine of the server uses. */
export function unusedPrefix(): string {
  return `t${randomBytes(6).toString('hex')}`
}

/** Removes everything that an engine with this prefix left in its servers. */
export async function wipe(servers: readonly string[], prefix: string): Promise<void> {
  const connection = await connect({ servers: [...servers] })
  const manager = await jetstreamManager(connection)
  for await (const { config } of manager.streams.list()) {
    if (config.name.startsWith(`${prefix}-`) || config.name === `KV_${prefix}-channels`) {
      await manager.streams.delete(config.name)
    }
  }
  await connection.close()
}
