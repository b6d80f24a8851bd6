import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { createConfig } from '../src/config/load.ts'
import { Health } from '../src/health/health.ts'
import { NOT_FOUND } from '../src/http/answers.ts'
import { corsOf } from '../src/http/cors.ts'
import { Router } from '../src/listeners/router.ts'

/** A router with routes whose answers name the route and the target that it got. */
async function routed() {
  const begun: string[] = []
  const router = new Router({
    health: new Health('embedded', '0'),
    log: pino({ level: 'silent' }),
    cors: corsOf(createConfig(), false),
    before: [({ url = '' }) => void begun.push(url)],
    unknown: () => NOT_FOUND,
  })
  router.add('/mcp', ({ url }, response, headers) => void response.writeHead(200, headers).end(`mcp ${url}`), {
    refuses: true,
  })
  router.add('/a2a/', ({ url }, response) => void response.end(`a2a ${url}`))
  router.add('/ce/', ({ url }, response) => void response.end(`ce ${url}`), { decoded: true })
  const server = await testServer(router.listener)
  const { port } = server
  const base = `http://127.0.0.1:${port}`
  const ask = async (path: string, init: RequestInit = { method: 'POST' }): Promise<string> =>
    (await fetch(`${base}${path}`, init)).text()
  return { router, base, ask, begun }
}

test.each([
  ['/mcp', 'mcp /mcp'],
  ['/mcp?a=1', 'mcp /mcp?a=1'],
  ['/a2a/echo/message:send?a=1', 'a2a /a2a/echo/message:send?a=1'],
  ['/a2a/%65cho', 'a2a /a2a/%65cho'],
  ['/a2a//echo;a=1', 'a2a /a2a//echo;a=1'],
  ['/ce/%73end?a=%20', 'ce /ce/send?a=%20'],
  ['/%6dcp', 'mcp /%6dcp'],
  ['/mcp/', '404 page not found\n'],
  ['/a2b/echo', '404 page not found\n'],
  ['/mcp/%zz', '404 page not found\n'],
])('router - %s is answered by %s, and begun at most once', async (path, answer) => {
  const { ask, begun } = await routed()
  expect(await ask(path)).toBe(answer)
  expect(begun).toHaveLength(path.includes('%zz') ? 0 : 1)
})

test('router - a target with a host is answered as its path', async () => {
  const { base } = await routed()
  const connection = new RawConnection(base)
  await connection.write('POST http://other/mcp?a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await connection.closed
  expect(connection.received).toContain('mcp /mcp?a')
})

test('router - a preflight is answered before any route, and a route gets the headers for a page', async () => {
  const { base } = await routed()
  const headers = { origin: 'http://localhost' }
  const preflight = await fetch(`${base}/mcp`, { method: 'OPTIONS', headers })
  expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([
    204,
    'GET, POST, DELETE, OPTIONS',
  ])
  const page = await fetch(`${base}/mcp`, { method: 'POST', headers })
  expect(page.headers.get('access-control-allow-origin')).toBe('*')
  expect((await fetch(`${base}/mcp`, { method: 'OPTIONS' })).headers.has('access-control-allow-origin')).toBe(false)
})

test('router - an error of a handler is answered with 500 in plain text', async () => {
  const { router, base } = await routed()
  router.add('/broken', () => {
    throw new Error('broken')
  })
  const response = await fetch(`${base}/broken`)
  expect([response.status, await response.text()]).toEqual([500, 'internal error\n'])
})

test('router - while it closes it refuses requests, except those that a connector refuses itself', async () => {
  const { router, ask } = await routed()
  router.close()
  expect(await ask('/mcp')).toBe('mcp /mcp')
  const refused = '{"error":"Service Unavailable","message":"Service Unavailable","statusCode":503}'
  expect(await ask('/mcp', { method: 'GET' })).toBe(refused)
  expect(await ask('/a2a/echo')).toBe(refused)
  expect(await ask('/ping', { method: 'GET' })).toBe(refused)
})
