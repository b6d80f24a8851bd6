import { setTimeout as pause } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'

import { createConfig } from '../src/config/load.ts'
import { Health } from '../src/health/health.ts'
import { createManagementListener } from '../src/listeners/management-listener.ts'
import { createManagementApi } from '../src/management/management-api.ts'
import { Metrics } from '../src/metrics/metrics.ts'

function managementListener(timeoutMs?: number): FastifyInstance {
  const metrics = new Metrics()
  const log = pino({ level: 'silent' })
  const health = new Health('embedded', '0')
  const app = createManagementListener({
    maxBodyBytes: 1024,
    health,
    api: createManagementApi({ config: createConfig(), health, metrics, log }),
    log,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  onTestFinished(async () => {
    metrics[Symbol.dispose]()
    await app.close()
  })
  return app
}

test('SVC-2 - requests have 180 s to arrive', () => {
  expect(managementListener().server.requestTimeout).toBe(180_000)
})

test('management - a client that is too slow to send or to read is cut off', async () => {
  const app = managementListener(200)
  // Larger than what the buffers of the two systems hold, so that the response cannot end unread.
  app.get('/large', async () => Buffer.alloc(64 * 1024 * 1024))
  const base = await app.listen({ host: '127.0.0.1', port: 0 })
  const halfHead = new RawConnection(base)
  await halfHead.write('GET /ready HTTP/1.1\r\n')
  const halfBody = new RawConnection(base)
  await halfBody.write('GET /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n')
  const slowReader = new RawConnection(base)
  slowReader.socket.pause()
  await slowReader.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
  await Promise.all([halfHead.closed, halfBody.closed])
  await expect
    .poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))), {
      timeout: 20_000,
    })
    .toBe(0)
})

test('MGMT-5 - a monitor outlives the time that a request has', async () => {
  const base = await managementListener(500).listen({ host: '127.0.0.1', port: 0 })
  const monitor = new WebSocket(`${base.replace('http', 'ws')}/api/monitor`)
  onTestFinished(() => monitor.close())
  const frames: unknown[] = []
  monitor.addEventListener('message', ({ data }) => void frames.push(data))
  await expect.poll(() => frames.length).toBe(1)
  await pause(1_100)
  monitor.send('stop')
  await expect.poll(() => frames.at(-1)).toBe('{"kind":"stopped"}')
})
