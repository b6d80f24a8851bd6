import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import type { Fetch } from './mounted-host.ts'
import { driveEndpoint, endWhileWaiting, startMountedHost } from './mounted-host.ts'

for (const name of ['express', 'hono']) {
  test(`examples - mount-hosts: ${name} serves the official client, and ends when asked to`, async () => {
    const host = await startMountedHost(name)
    await driveEndpoint(host.url)
    expect(await endWhileWaiting(host)).toBe(0)
  })
}

test('examples - mount-hosts: the route of Next.js serves the official client, and ends when asked to', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-route-'))
  process.env['STORE_PATH'] = folder
  const before = process.listeners('SIGTERM')
  const route = await import('../mount-hosts/next/route.ts')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const url = new URL('http://localhost:3000/mcp')
  const send: Fetch = (address, init) => {
    const request = new Request(address, init)
    if (request.method === 'GET') return route.GET(request)
    return request.method === 'DELETE' ? route.DELETE(request) : route.POST(request)
  }
  expect(await readdir(folder)).toEqual([])
  await driveEndpoint(url, send)
  expect(route.runtime).toBe('nodejs')
  const [close, ...others] = process.listeners('SIGTERM').filter((listener) => !before.includes(listener))
  expect(others).toEqual([])
  const stop = async (): Promise<number> => {
    close?.('SIGTERM')
    return 0
  }
  expect(await endWhileWaiting({ url, stop }, send)).toBe(0)
})
