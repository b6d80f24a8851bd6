import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { driveEndpoint, endWhileWaiting, startMountedHost } from './mounted-host.ts'

for (const name of ['express', 'hono']) {
  test(`examples - mount-hosts: ${name} serves the official client, and ends when asked to`, async () => {
    const host = await startMountedHost(name)
    await driveEndpoint(host.url)
    expect(await endWhileWaiting(host)).toBe(0)
  })
}

test('examples - mount-hosts: the route of Next.js serves the official client', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-route-'))
  process.env['STORE_PATH'] = folder
  const route = await import('../mount-hosts/next/route.ts')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await driveEndpoint(new URL('http://localhost:3000/mcp'), (url, init) => {
    const request = new Request(url, init)
    if (request.method === 'GET') return route.GET(request)
    return request.method === 'DELETE' ? route.DELETE(request) : route.POST(request)
  })
  expect(route.runtime).toBe('nodejs')
})
