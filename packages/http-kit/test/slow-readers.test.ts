import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

import { expect, onTestFinished, test } from 'vitest'

import { AdmissionControl } from '../src/index.ts'
import type { PlainExchange } from './support/plain-surface.ts'
import { servePlain } from './support/plain-surface.ts'

const certificates = new URL('../../../apps/server/test/certificates/', import.meta.url)
const certificate = {
  cert: readFileSync(new URL('server.crt', certificates)),
  key: readFileSync(new URL('server.key', certificates)),
}

test('endpoint - a reader that does not read its answer is cut off, and its resources are released', async () => {
  const admission = new AdmissionControl()
  let unread = 0
  const answer = (exchange: PlainExchange): void => {
    exchange.answer('x'.repeat(16_000_000))
    unread = admission.use.unreadBytes
  }
  const { port } = await servePlain(() => answer, { frontDoor: { admission, stalledReaderMs: 50 } })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => unread).toBeGreaterThan(16_000_000)
  await expect.poll(() => admission.use).toMatchObject({ requests: 0, bodyBytes: 0, streams: 0, unreadBytes: 0 })
})

test.each([
  ['without TLS', undefined, connect],
  ['with TLS', certificate, (port: number) => connectTls({ port, rejectUnauthorized: false })],
] as const)('endpoint - a reader that takes its answer slowly gets the whole of it, %s', async (_how, tls, open) => {
  const answer = 'x'.repeat(24_000_000)
  const frontDoor = { stalledReaderMs: 1_000 }
  const { port } = await servePlain(() => (exchange) => exchange.answer(answer), { frontDoor }, tls)
  const socket = open(port)
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  // The whole answer takes three times as long as a reader may take nothing. Each part is more than kernels buffer in
  // small pieces, so that the server sees progress several times a second, also where the process runs slowly.
  let received = 0
  let rests = 0
  for await (const chunk of socket) {
    if (chunk instanceof Uint8Array) received += chunk.byteLength
    if (received < (rests + 1) * 2_000_000) continue
    rests++
    await delay(250)
  }
  expect(received).toBeGreaterThan(answer.length)
  expect(rests).toBe(12)
})
