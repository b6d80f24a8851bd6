import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { DirectRoutes } from '../src/listeners/direct-routes.ts'

/** A server with direct routes; its answers name what answered. */
async function routed(): Promise<{ ask: (path: string, init?: RequestInit) => Promise<string>; begun: string[] }> {
  const begun: string[] = []
  const direct = new DirectRoutes([({ url = '' }) => begun.push(url)])
  direct.add('/mcp', (_request, response) => void response.end('mcp'))
  direct.add('/a2a/', (_request, response) => void response.end('a2a'))
  const server = createServer(direct.listener((_request, response) => void response.end('framework')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const ask = async (path: string, init: RequestInit = { method: 'POST' }): Promise<string> =>
    (await fetch(`http://127.0.0.1:${port}${path}`, init)).text()
  return { ask, begun }
}

test('direct routes - a POST to a route is answered without the framework, and begun once', async () => {
  const { ask, begun } = await routed()
  expect([await ask('/mcp'), await ask('/a2a/echo'), await ask('/a2a/echo/message:send?a=1')]).toEqual([
    'mcp',
    'a2a',
    'a2a',
  ])
  expect(begun).toEqual(['/mcp', '/a2a/echo', '/a2a/echo/message:send?a=1'])
})

test.each<[what: string, path: string, init?: RequestInit]>([
  ['a browser', '/mcp', { method: 'POST', headers: { origin: 'http://localhost' } }],
  ['another method', '/mcp', { method: 'GET' }],
  ['a preflight', '/a2a/echo', { method: 'OPTIONS' }],
  ['a longer path', '/mcp/server-card'],
  ['a query at an exact path', '/mcp?a=1'],
  ['an unknown path', '/a2b/echo'],
  ['an encoded path', '/a2a/%65cho'],
  ['a repeated slash', '/a2a//echo'],
  ['a path with a parameter', '/a2a/echo;a=1'],
])('direct routes - the framework answers %s', async (_what, path, init) => {
  const { ask, begun } = await routed()
  expect(await ask(path, init)).toBe('framework')
  expect(begun).toEqual([])
})
