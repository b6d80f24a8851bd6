import { once } from 'node:events'

import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import { startServer } from '../src/server.ts'

/** A request whose body does not come to its end. */
function cut(path: string, type = 'application/json'): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: 1000\r\n\r\n{"a":`
}

test('log - a client that disconnects early is a debug line with the place, and no error', async () => {
  const written: string[] = []
  const lines = () => written.map((line) => JSON.parse(line) as Record<string, unknown>)
  const log = pino(
    { level: 'debug', formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => void written.push(line) },
  )
  const config = createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: testFolder() } })
  const server = await startServer(config, { log })
  onTestFinished(() => server.close())

  const sent: readonly [base: string, text: string, path: string, at: string][] = [
    [server.http.url, cut('/mcp'), '/mcp', 'in its request'],
    [server.http.url, cut('/a2a/agent'), '/a2a/agent', 'in its request'],
    [server.http.url, cut('/agents/register'), '/agents/register', 'in its request'],
    [server.http.url, cut('/ce/send/event', 'application/cloudevents+json'), '/ce/send/event', 'in its request'],
    [server.api.url, cut('/api/actions/create_channel'), '/api/actions/create_channel', 'in its request'],
    [
      server.http.url,
      'POST /ce/queue/receive?channel=q&wait_timeout=30 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
      '/ce/queue/receive',
      'before its answer',
    ],
    [
      server.http.url,
      'GET /ce/subscribe/events?channel=e HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n',
      '/ce/subscribe/events',
      'in its answer',
    ],
  ]
  for (const [base, text, path, at] of sent) {
    const connection = new RawConnection(base)
    const answered = once(connection.socket, 'data')
    await connection.write(text)
    if (at === 'in its answer') await answered
    // The server has got the head when it answers something that came later.
    else for (let i = 0; i < 2; i++) await fetch(`${base}/ping`)
    connection.socket.resetAndDestroy()
    await expect
      .poll(() => lines().filter(({ msg }) => msg === 'client disconnected'))
      .toContainEqual(expect.objectContaining({ level: 'debug', path, at, address: '127.0.0.1' }))
  }
  expect(lines().filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})
