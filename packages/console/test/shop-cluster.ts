import { setTimeout as pause } from 'node:timers/promises'

import { NatsCluster } from '@signalbox/engine-nats/testing'

import { CrashingServer } from './crashing-server.ts'
import type { Server } from './server.ts'
import { fill } from './traffic.ts'

const HOST_NAME = new URL('host-name.ts', import.meta.url).href

/** The time between two turns of the traffic, in ms. */
const TURN_MS = 150

const NODES = ['broker-1', 'broker-2', 'broker-3'] as const

/** Three nodes over three nats-servers, with the messages of a shop. */
export class ShopCluster implements AsyncDisposable {
  /** The node whose console is shown. */
  readonly server: Server
  readonly #stack: AsyncDisposableStack

  private constructor(server: Server, stack: AsyncDisposableStack) {
    this.server = server
    this.#stack = stack
  }

  static async start(): Promise<ShopCluster> {
    await using stack = new AsyncDisposableStack()
    const nats = stack.use(await NatsCluster.start())
    const servers: Server[] = []
    for (const name of NODES) {
      const settings = {
        ENGINE: 'nats',
        NATS_SERVERS: nats.urls.join(','),
        NODE_OPTIONS: `--import=${HOST_NAME}`,
        PICTURED_HOST: name,
      }
      servers.push(stack.use(await CrashingServer.start(settings)))
    }
    const [server] = servers
    if (server === undefined) throw new Error('the cluster has no node')
    await fill(server)
    const closed = new AbortController()
    const traffic = sell(servers, closed.signal)
    stack.defer(async () => {
      closed.abort()
      await traffic
    })
    return new ShopCluster(server, stack.move())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** Sends and receives at changing rates, each time through the next node. */
async function sell(servers: readonly Server[], signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    const server = servers[turn % servers.length]
    const wave = 2 + Math.round(Math.sin(turn / 40) + Math.sin(turn / 9))
    for (let number = 0; number < wave; number++) {
      const body = JSON.stringify({ order: 9_000 + turn * 10 + number, total: 12.5 + (turn % 17) })
      await server?.tool('queue_send', { channel: 'orders.south', body })
    }
    await server?.tool('events_publish', { channel: 'prices.north', body: String(100 + (turn % 9)) })
    await server?.tool('queue_receive', { channel: 'orders.south', max_messages: 2, wait_timeout_seconds: 1 })
    await pause(TURN_MS)
  }
}
