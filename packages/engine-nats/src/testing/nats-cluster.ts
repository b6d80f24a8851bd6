import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'

import type { NatsServerOptions } from './nats-server.ts'
import { NatsServer } from './nats-server.ts'

/** Returns different ports that were free a moment ago. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const addresses = servers.map((server) => server.address())
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return addresses.map((address) => {
    if (address === null || typeof address === 'string') throw new Error('no port')
    return address.port
  })
}

export interface NatsClusterOptions extends Pick<NatsServerOptions, 'binary'> {
  /** A folder for the log files of the servers. */
  readonly logs?: string | undefined
}

/** Three real nats-servers that replicate. */
export class NatsCluster implements AsyncDisposable {
  readonly servers: readonly NatsServer[]

  private constructor(servers: readonly NatsServer[]) {
    this.servers = servers
  }

  static async start({ binary, logs }: NatsClusterOptions = {}): Promise<NatsCluster> {
    const ports = await freePorts(3)
    const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(', ')
    const servers = await Promise.all(
      ports.map((port, i) =>
        NatsServer.start({
          binary,
          monitored: true,
          config: [
            `server_name: n${i}`,
            `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`,
            ...(logs === undefined ? [] : [`log_file: ${JSON.stringify(join(logs, `nats-${i}.log`))}`]),
          ].join('\n'),
        }),
      ),
    )
    const cluster = new NatsCluster(servers)
    await cluster.#settled()
    return cluster
  }

  get urls(): readonly string[] {
    return this.servers.map(({ url }) => url)
  }

  /** Waits until the servers have elected a leader and accept streams. */
  async #settled(): Promise<void> {
    for (let tries = 0; tries < 300; tries++) {
      const connection = await connect({ servers: this.urls[0] ?? '', ignoreClusterUpdates: true })
      try {
        const manager = await jetstreamManager(connection, { timeout: 1_000 })
        await manager.streams.add({ name: 'probe', subjects: ['probe'], num_replicas: 3 })
        await manager.streams.delete('probe')
        return
      } catch {
        await pause(100)
      } finally {
        await connection.close()
      }
    }
    throw new Error('the NATS cluster did not start')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()))
  }
}
