import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

import { onTestFinished } from 'vitest'

/** The network between one node and its servers, for as long as the test runs. */
export interface Cuttable {
  readonly url: string
  /** Breaks every connection, and takes no other until {@link restore}. */
  cut(): void
  restore(): void
}

export async function cuttable(serverUrl: string): Promise<Cuttable> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.once('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    server.close()
    breakAll()
  })
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true
      breakAll()
    },
    restore() {
      isCut = false
    },
  }
}
