import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

import { expect, onTestFinished, test, vi } from 'vitest'

import { AdmissionControl } from '../src/index.ts'
import { servePlain } from './support/plain-surface.ts'

const certificates = new URL('../../../apps/server/test/certificates/', import.meta.url)
const certificate = {
  cert: readFileSync(new URL('server.crt', certificates)),
  key: readFileSync(new URL('server.key', certificates)),
}

test('endpoint - a reader that does not read its answer is cut off, and its resources are released', async () => {
  const admission = new AdmissionControl()
  const { port } = await servePlain(() => (exchange) => exchange.answer('x'.repeat(16_000_000)), {
    frontDoor: { admission, stalledReaderMs: 50 },
  })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await vi.waitFor(() => expect(admission.use.unreadBytes).toBeGreaterThan(16_000_000))
  await vi.waitFor(() => expect(admission.use).toMatchObject({ requests: 0, bodyBytes: 0, streams: 0, unreadBytes: 0 }))
})

test.each([
  ['without TLS', undefined, connect],
  ['with TLS', certificate, (port: number) => connectTls({ port, rejectUnauthorized: false })],
] as const)('endpoint - a reader that takes its answer slowly gets the whole of it, %s', async (_how, tls, open) => {
  const answer = 'x'.repeat(24_000_000)
  const frontDoor = { stalledReaderMs: 600 }
  const { port } = await servePlain(() => (exchange) => exchange.answer(answer), { frontDoor }, tls)
  const socket = open(port)
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  let received = 0
  for await (const chunk of socket) {
    if (chunk instanceof Uint8Array) received += chunk.byteLength
    // The whole answer takes several times as long as a reader may take nothing.
    await delay(4)
  }
  expect(received).toBeGreaterThan(answer.length)
})
