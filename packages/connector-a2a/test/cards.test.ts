import { AuthenticationError } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import { openGateway } from './gateway-host.ts'

const nobody = {
  authenticate() {
    throw new AuthenticationError('nobody is let in')
  },
}

test("CARD-1 - card: the platform's own has the platform's name, and is public", async () => {
  const host = await openGateway({ authenticator: nobody })
  const url = `${host.base}/.well-known/agent-card.json`
  const response = await fetch(url, { headers: { origin: 'https://elsewhere.example' } })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  expect(await response.json()).toMatchObject({
    name: 'signalbox',
    protocolVersions: ['1.0'],
    version: expect.any(String),
  })
  const named = await openGateway({ platform: { name: 'Hub', version: '9' } })
  expect(await (await fetch(`${named.base}/.well-known/agent-card.json`)).json()).toMatchObject({
    name: 'Hub',
    version: '9',
  })
})

test("CARD-2 - card: an agent's card is the registry's at the gateway's address, with the server's fields and unknown ones; 404 if absent", async () => {
  const host = await openGateway({ authenticator: nobody })
  const url = `${host.base}/a2a/agent-1/.well-known/agent-card.json`
  const absent = await fetch(url)
  expect([absent.status, absent.headers.get('content-type')]).toEqual([404, 'application/json'])
  expect(await absent.json()).toEqual({ error: 'AGENT_NOT_FOUND', message: expect.any(String), details: [] })
  for (const id of ['', 'Not An Id', 'x'.repeat(500)]) {
    expect((await fetch(`${host.base}/a2a/${id}/.well-known/agent-card.json`)).status).toBe(404)
  }
  const card = {
    agent_id: 'agent-1',
    name: 'One',
    url: 'http://127.0.0.1:1/',
    skills: [{ id: 's', name: 'S' }],
    own: { a: 1 },
    metadata: { team: 'secret' },
  }
  await host.registry.register(card, { clientId: 'alice' })
  const shown = await fetch(url, { headers: { origin: 'https://elsewhere.example' } })
  expect(shown.status).toBe(200)
  const { url: _theAgentsOwn, metadata: _ofTheOwner, ...unchanged } = card
  const served = await shown.json()
  expect(served).not.toHaveProperty('metadata')
  expect(host.registry.get('agent-1')?.metadata).toEqual({ team: 'secret' })
  expect(served).toMatchObject({
    ...unchanged,
    url: `${host.base}/a2a/agent-1/v0.3`,
    registered_by: 'alice',
    protocolVersions: ['1.0'],
    registered_at: expect.any(String),
    last_seen: expect.any(String),
  })
  expect(host.finished).toEqual([])
})

test('card - the root of the host shows the card of the root agent while that is registered', async () => {
  const host = await openGateway({ rootAgentId: 'agent-1' })
  const root = async () => (await fetch(`${host.base}/.well-known/agent-card.json`)).json()
  expect(await root()).toMatchObject({ name: 'signalbox' })
  await host.register('agent-1', 'http://127.0.0.1:1/')
  const own = await fetch(`${host.base}/a2a/agent-1/.well-known/agent-card.json`)
  expect(await root()).toEqual(await own.json())
  await host.deregister('agent-1')
  expect(await root()).toMatchObject({ name: 'signalbox' })
})

test('CARD-3 - card: a request with the current ETag gets 304, until the card changes', async () => {
  const host = await openGateway()
  await host.register('agent-1', 'http://127.0.0.1:1/')
  for (const path of ['/.well-known/agent-card.json', '/a2a/agent-1/.well-known/agent-card.json']) {
    const first = await fetch(host.base + path)
    const etag = first.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]+"$/)
    expect(first.headers.get('cache-control')).toBe('private, max-age=60')
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await fetch(host.base + path, { headers: { 'if-none-match': known } })
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, ''])
    }
    expect((await fetch(host.base + path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
    const head = await fetch(host.base + path, { method: 'HEAD' })
    expect([head.status, head.headers.get('etag'), head.headers.get('content-length'), await head.text()]).toEqual([
      200,
      etag,
      first.headers.get('content-length'),
      '',
    ])
    const post = await fetch(host.base + path, { method: 'POST', body: '{}' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  }
  const path = `${host.base}/a2a/agent-1/.well-known/agent-card.json`
  const before = (await fetch(path)).headers.get('etag') ?? ''
  await host.registry.register(
    { agent_id: 'agent-1', name: 'Renamed', url: 'http://127.0.0.1:1/' },
    { clientId: 'owner' },
  )
  const changed = await fetch(path, { headers: { 'if-none-match': before } })
  expect(changed.status).toBe(200)
  expect(await changed.json()).toMatchObject({ name: 'Renamed' })
})
