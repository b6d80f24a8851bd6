import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { limitConnections, openFileLimit } from '../src/security/connection-limit.ts'
import type { SecurityEvent } from '../src/security/events.ts'
import { RawConnection } from './support/socket.ts'
import { file } from './support/tokens.ts'

async function listening(openFiles: number | undefined) {
  const events: SecurityEvent[] = []
  const server = createServer((_request, response) => void response.end('served'))
  const limit = limitConnections(server, (event) => void events.push(event), openFiles)
  onTestFinished(() => {
    limit[Symbol.dispose]()
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connected = async () => {
    const connection = new RawConnection(base)
    await new Promise((resolve) => connection.socket.once('connect', resolve))
    return connection
  }
  return { connected, events, close: () => limit[Symbol.dispose](), server }
}

test('S8 - connections beyond what the process may have open are closed at once, told, and held against nobody later', async () => {
  const { connected, events, close } = await listening(8)
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
      kind: 'connections.refused',
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

test('S8 - the limit is the one of the process; where the system says none there is none', async () => {
  expect(openFileLimit(file('Max open files            1024                4096                 files\n'))).toBe(1_024)
  expect(
    openFileLimit(file('Max open files            unlimited            unlimited            files\n')),
  ).toBeUndefined()
  expect(openFileLimit('/nowhere')).toBeUndefined()
  const few = await listening(
    openFileLimit(file('Max open files            1024                4096                 files\n')),
  )
  expect(few.server.maxConnections).toBe(768)
  expect((await listening(1_048_576)).server.maxConnections).toBe(1_044_480)
  expect((await listening(undefined)).server.maxConnections).toBeUndefined()
})
