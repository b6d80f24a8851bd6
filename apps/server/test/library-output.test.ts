import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test } from 'vitest'

import { startCli } from './support/cli.ts'
import { startNats } from './support/nodes.ts'

/** A way to a nats-server on which something else can be said in its place. */
async function garblingProxy(target: URL): Promise<{ readonly url: string; garble(): void }> {
  const near = new Set<Socket>()
  const server = createServer((socket) => {
    const far = connect(Number(target.port), target.hostname)
    near.add(socket)
    for (const each of [socket, far]) each.on('error', () => {})
    socket.once('close', () => far.destroy())
    far.once('close', () => socket.destroy())
    socket.pipe(far).pipe(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of near) socket.destroy()
  })
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    garble() {
      for (const socket of near) socket.write('neither protocol nor JSON\r\n')
    },
  }
}

describe.skipIf(NATS_SERVER === undefined)('log', () => {
  test('log - console output of the NATS client becomes ordinary lines of the log', async () => {
    const nats = await startNats()
    const proxy = await garblingProxy(new URL(nats.url))
    const server = startCli({ env: { ENGINE: 'nats', NATS_SERVERS: proxy.url } })
    await server.ready()
    proxy.garble()
    await server.until(() => `${server.stdout}${server.stderr}`.includes('reader closed'), 'the client says so')
    await server.until(() => server.stdout.endsWith('\n'), 'the end of the line')
    expect(server.lines()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: 'a library wrote to the console',
        text: expect.stringMatching(/^reader closed.*Error/),
      }),
    )
    expect(server.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('{'))).toEqual([])
    expect(server.stderr).toBe('')
  })
})
