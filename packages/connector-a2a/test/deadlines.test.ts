import { expect, test } from 'vitest'

import { hang, json, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'

const TIMEOUT = { error: { code: -32001, message: 'agent timeout' } }

async function timed<T>(work: Promise<T>): Promise<{ readonly value: T; readonly seconds: number }> {
  const begin = performance.now()
  const value = await work
  return { value, seconds: (performance.now() - begin) / 1000 }
}

test('A2, CODE-1 - deadline: timeout 1 on an agent that takes 2 s is -32001 after 1 s', async () => {
  const host = await openGateway()
  const agent = await startAgent((_asked, response) => void setTimeout(() => json(response, '{}'), 2_000).unref())
  await host.register('slow', agent.url)
  const { value, seconds } = await timed(host.call('slow', { configuration: { timeout: 1 } }))
  expect(value).toMatchObject(TIMEOUT)
  expect(seconds).toBeGreaterThan(0.95)
  expect(seconds).toBeLessThan(8)
})

test('A2, LIMIT-1 - deadline: without one it is the default, a larger one is capped, a fraction counts', async () => {
  const host = await openGateway({ timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 600 } })
  const agent = await startAgent(hang)
  await host.register('silent', agent.url)
  const rows: [object, number][] = [
    [{}, 0.3],
    [{ configuration: {} }, 0.3],
    [{ configuration: { timeout: 99_999 } }, 0.6],
    [{ configuration: { timeout: 1e300 } }, 0.6],
    [{ configuration: { timeout: 0.1 } }, 0.1],
    [{ configuration: { timeout: 1e-300 } }, 0],
  ]
  const done = await Promise.all(rows.map(([params]) => timed(host.call('silent', params))))
  for (const [i, { value, seconds }] of done.entries()) {
    const expected = rows[i]?.[1] ?? 0
    expect(value).toMatchObject(TIMEOUT)
    expect(seconds).toBeGreaterThan(expected - 0.05)
    expect(seconds).toBeLessThan(expected + 8)
  }
})

test('A2 - deadline: it is for the whole answer, however steadily its pieces come', async () => {
  const host = await openGateway({ timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 600 } })
  const agent = await startAgent((_asked, response) => {
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  })
  await host.register('drip', agent.url)
  const { value, seconds } = await timed(host.call('drip'))
  expect(value).toMatchObject(TIMEOUT)
  expect(seconds).toBeLessThan(8)
})
