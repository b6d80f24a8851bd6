import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { limitConnections, openFileLimit } from '@signalbox/http-kit/internal'
import type { ConnectionLimitOptions, RefusalReport } from '@signalbox/http-kit/internal'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testFile } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { closeOtherAddresses, listenAlso } from '../src/listeners/address.ts'

async function listening(openFiles: number | undefined, options: Partial<ConnectionLimitOptions> = {}) {
  const events: RefusalReport[] = []
  const server = createServer((_request, response) => void response.end('served'))
  const limit = limitConnections(server, (event) => void events.push(event), { openFiles, ...options })
  onTestFinished(() => {
    limit[Symbol.dispose]()
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connected = async (localAddress?: string) => {
    const connection = new RawConnection(base, localAddress)
    await new Promise((resolve) => connection.socket.once('connect', resolve))
    return connection
  }
  return { connected, events, close: () => limit[Symbol.dispose](), server }
}

test("S8 - connections over the process's limit are closed at once and reported, and do not count later", async () => {
  const { connected, events, close } = await listening(8, { isTrustedProxy: () => true })
  const kept = [
    await connected(),
    await connected(),
    await connected(),
    await connected(),
    await connected(),
    await connected(),
  ]
  const refused = [await connected(), await connected()]
  await Promise.all(refused.map(({ closed }) => closed))
  expect(events).toEqual([
    {
      address: '127.0.0.1',
      count: 1,
      reason: '6 connections are open, and the process may have 8 files open; raise that limit (ulimit -n)',
    },
  ])
  await kept[0]?.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await kept[0]?.closed
  expect(kept[0]?.received).toContain('served')
  const next = await connected()
  await next.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await next.closed
  expect(next.received).toContain('served')
  close()
  expect(events).toHaveLength(2)
  expect(events[1]).toMatchObject({ count: 1 })
})

// Other systems have only one loopback address.
test.runIf(process.platform === 'linux')(
  'S8 - connections by a second address, as localhost has one, count with the others, and are served',
  async () => {
    const { connected, events, server } = await listening(8, { isTrustedProxy: () => true })
    await listenAlso(server, '127.0.0.2')
    onTestFinished(() => closeOtherAddresses(server))
    const { port } = server.address() as AddressInfo
    const second = async () => {
      const connection = new RawConnection(`http://127.0.0.2:${port}`)
      await new Promise((resolve) => connection.socket.once('connect', resolve))
      return connection
    }
    const kept = [await connected(), await connected(), await connected(), await second(), await second()]
    const last = await second()
    const refused = await second()
    await refused.closed
    expect(events).toMatchObject([{ count: 1, reason: expect.stringContaining('6 connections are open') }])
    const alsoRefused = await connected()
    await alsoRefused.closed
    await last.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await last.closed
    expect(last.received).toContain('served')
    for (const { socket } of kept) socket.destroy()
  },
)

function isNine(address: string): boolean {
  return address === '127.0.0.9'
}

// Other systems have only one loopback address.
test.runIf(process.platform === 'linux')(
  'S8 - one network address has at most half of the connections, unless it is a trusted proxy',
  async () => {
    const { connected, events, server } = await listening(48, { isTrustedProxy: isNine })
    const open = () => new Promise<number>((resolve) => void server.getConnections((_, count) => resolve(count)))
    const connect = (count: number, from: string) => Promise.all(Array.from({ length: count }, () => connected(from)))
    const greedy = await connect(18, '127.0.0.2')
    const refused = await connected('127.0.0.2')
    await refused.closed
    expect(events).toEqual([
      {
        address: '127.0.0.2',
        count: 1,
        reason: expect.stringMatching(/^18 connections from there are open.*ulimit -n.*TRUSTED_PROXIES/),
      },
    ])
    const other = await connected('127.0.0.3')
    await expect.poll(open).toBe(19)
    // What was closed counts no more.
    greedy[0]?.socket.destroy()
    await expect.poll(open).toBe(18)
    const again = await connected('127.0.0.2')
    await expect.poll(open).toBe(19)
    for (const connection of [...greedy, other, again]) connection.socket.destroy()
    await expect.poll(open).toBe(0)
    await connect(20, '127.0.0.9')
    await expect.poll(open).toBe(20)
    expect(events).toHaveLength(1)
  },
)

test('S8 - the connection limit follows the limit on open files of the process, if there is one', async () => {
  expect(openFileLimit(testFile('Max open files            1024                4096                 files\n'))).toBe(
    1_024,
  )
  expect(
    openFileLimit(testFile('Max open files            unlimited            unlimited            files\n')),
  ).toBeUndefined()
  expect(openFileLimit('/nowhere')).toBeUndefined()
  const few = await listening(
    openFileLimit(testFile('Max open files            1024                4096                 files\n')),
  )
  expect(few.server.maxConnections).toBe(768)
  expect((await listening(1_048_576)).server.maxConnections).toBe(1_044_480)
  expect((await listening(undefined)).server.maxConnections).toBeUndefined()
  // Operators have half of what is kept back.
  expect((await listening(1_024, { listener: 'management' })).server.maxConnections).toBe(128)
})
