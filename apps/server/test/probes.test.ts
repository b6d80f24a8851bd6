import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import type { HealthState } from '../src/health/health.ts'
import { Health } from '../src/health/health.ts'
import { createManagementListener } from '../src/listeners/management-listener.ts'
import { createManagementApi } from '../src/management/management-api.ts'
import { Metrics } from '../src/metrics/metrics.ts'
import { VERSION } from '../src/version.ts'
import { serve } from './support/server.ts'

const TEXT = 'text/plain; charset=utf-8'

test('PROBE-1, PROBE-2, PROBE-3 - both listeners answer /ping, /health and /ready', async () => {
  const { http, api } = await serve()
  for (const { url } of [http, api]) {
    const ping = await fetch(`${url}/ping`)
    expect([ping.status, ping.headers.get('content-type'), await ping.text()]).toEqual([200, TEXT, 'pong'])
    const health = await fetch(`${url}/health`)
    expect([health.status, health.headers.get('content-type'), await health.text()]).toEqual([200, TEXT, 'healthy'])
    const ready = await fetch(`${url}/ready`)
    expect([ready.status, ready.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    const state = (await ready.json()) as HealthState
    expect(Object.keys(state)).toEqual(['ready', 'healthy', 'node', 'version', 'engine', 'uptime_seconds', 'checks'])
    expect(state).toMatchObject({ ready: true, healthy: true, version: VERSION, engine: 'embedded' })
    expect(state.uptime_seconds).toBeGreaterThanOrEqual(0)
    expect(state.checks.length).toBeGreaterThanOrEqual(2)
    for (const check of state.checks) {
      expect(check).toEqual({ name: expect.any(String), ok: true, detail: expect.any(String) })
    }
  }
})

test('PROBE-2, PROBE-3, PROBE-4 - in each phase: starting, serving, registry late, engine down, stopping', async () => {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  const metrics = new Metrics()
  metrics.watchEngine(() => engine.stats())
  const health = new Health('embedded', VERSION)
  const log = pino({ level: 'silent' })
  const api = createManagementApi({ config: createConfig(), health, metrics, log })
  const app = createManagementListener({ maxBodyBytes: 1024, health, api, log })
  onTestFinished(async () => {
    metrics[Symbol.dispose]()
    await app.close()
    await engine.close()
  })
  const probe = async () => {
    const live = await app.inject('/health')
    const ready = await app.inject('/ready')
    const state = ready.json<HealthState>()
    const scrape = await app.inject('/metrics')
    expect([scrape.statusCode, scrape.body]).toEqual([200, expect.stringContaining('process_cpu_seconds_total')])
    return [live.statusCode, live.body, ready.statusCode, state.ready, state.healthy]
  }

  expect(await probe()).toEqual([200, 'healthy', 503, false, true])
  health.serving(engine)
  expect(await probe()).toEqual([200, 'healthy', 200, true, true])
  const late = { name: 'registry', ok: false, detail: 'waiting for the channel _AGENTS_.discovery' }
  health.serving({ health: async () => ({ ok: true, checks: [late] }) })
  expect(await probe()).toEqual([200, 'healthy', 503, false, true])
  health.serving(engine)
  await engine.close()
  expect(await probe()).toEqual([500, 'not healthy', 503, false, false])
  health.stopping()
  expect(await probe()).toEqual([200, 'healthy', 503, false, true])
})

test.each(['/kill', '/nope', '/metrics/x', '/v1/kill', '/..%2f', '/api/nope', '/api/actions/nope'])(
  'PROBE-5 - %s is 404 in plain text on both listeners',
  async (path) => {
    const { http, api } = await serve()
    for (const { url } of [http, api]) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        const body = method === 'GET' ? {} : { body: '{', headers: { 'content-type': 'application/x-unheard-of' } }
        const response = await fetch(`${url}${path}`, { method, ...body })
        expect([method, response.status, response.headers.get('content-type')]).toEqual([method, 404, TEXT])
        expect(await response.text()).toBe('404 page not found\n')
      }
    }
  },
)

test('probes - a method that a probe does not have is 404 in plain text', async () => {
  const { http, api } = await serve()
  for (const { url } of [http, api]) {
    const response = await fetch(`${url}/ready`, { method: 'POST' })
    expect([response.status, response.headers.get('content-type')]).toEqual([404, TEXT])
  }
})

test('probes - the shared listener has no metrics, the management listener no /mcp', async () => {
  const { http, api } = await serve()
  expect((await fetch(`${http.url}/metrics`)).status).toBe(404)
  expect((await fetch(`${api.url}/mcp`, { method: 'POST' })).status).toBe(404)
})

test('probes - a path that cannot be decoded is an error in plain text, without a stack', async () => {
  const { http, api } = await serve()
  for (const { url } of [http, api]) {
    const response = await fetch(`${url}/%ff`)
    expect([response.status, response.headers.get('content-type')]).toEqual([404, TEXT])
  }
})
