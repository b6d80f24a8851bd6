import { IncomingMessage, request as httpRequest } from 'node:http'
import { Socket } from 'node:net'
import { text } from 'node:stream/consumers'

import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { AuthenticationError } from '@signalbox/http-kit'
import { readPublicUrl } from '@signalbox/http-kit/internal'
import type { AgentCard } from '@signalbox/registry'
import { testServer } from '@signalbox/testkit/test-server'
import { DefaultAgentCardResolver as V03CardResolver } from 'a2a-js-sdk-v03/client'
import { expect, onTestFinished, test } from 'vitest'

import { Cards } from '../../src/cards/cards.ts'
import { a2aConnector, openCardKeys } from '../../src/index.ts'
import type { GatewayHost } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { keyFile, newPem, strictProblems } from './card-members.ts'

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

const V1 = { 'a2a-version': '1.0' }

const CARD = '/.well-known/agent-card.json'

const OWNER = { clientId: 'owner' }

const AUTHENTICATED = { authenticator: { authenticate: () => ({ clientId: 'alice' }) } }

async function opened(more: object = {}, options: object = {}): Promise<GatewayHost & { readonly url: string }> {
  const host = await openGateway(options)
  await host.registry.register({ agent_id: 'agent-1', name: 'One', url: 'http://127.0.0.1:1/', ...more }, OWNER)
  return Object.assign(host, { url: `${host.base}/a2a/agent-1${CARD}` })
}

type Shown = Record<string, unknown>

async function shown(url: string, headers: Record<string, string> = {}): Promise<Shown> {
  return (await (await fetch(url, { headers })).json()) as Shown
}

test('A20 - card: A2A-Version 1.0 gets members of A2A 1.0; other requests get members of both versions', async () => {
  const { url } = await opened({ own: 1 }, AUTHENTICATED)
  for (const version of ['1.0', '1.0.3', '1', '1.1']) {
    expect(strictProblems(await shown(url, { 'a2a-version': version })), version).toEqual([])
    expect(strictProblems(await shown(`${url}?A2A-Version=${version}`)), version).toEqual([])
  }
  for (const version of ['', '0.3', '0.3.0', 'x']) {
    expect(await shown(url, { 'a2a-version': version }), version).toMatchObject({
      protocolVersion: '0.3.0',
      own: 1,
      security: [{ bearer: [] }],
    })
  }
})

test('A20 - card: caches keep the versions apart', async () => {
  const { url, base } = await opened()
  for (const path of [url, base + CARD]) {
    expect((await fetch(path)).headers.get('vary')).toBe('A2A-Version')
    const [one, other] = [await fetch(path), await fetch(path, { headers: V1 })]
    expect(one.headers.get('etag')).not.toBe(other.headers.get('etag'))
  }
})

test('A20 - card: a2a.v03 false shows the card of A2A 1.0 to everyone', async () => {
  const { url, base } = await opened({ a2a: { v03: false, wire: '1.0' } })
  for (const headers of [{}, { 'a2a-version': '0.3' }, V1]) {
    const card = await shown(url, { ...headers })
    expect(strictProblems(card)).toEqual([])
    expect(card['supportedInterfaces']).toEqual([
      { url: `${base}/a2a/agent-1`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${base}/a2a/agent-1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ])
  }
})

test('A20 - card: a heartbeat changes last_seen and no ETag; a registration changes the ETag', async () => {
  const { url, registry } = await opened()
  const etags = async () => [await fetch(url), await fetch(url, { headers: V1 })].map((one) => one.headers.get('etag'))
  const [before, seen] = [await etags(), (await shown(url))['last_seen']]
  await expect
    .poll(async () => {
      await registry.heartbeat('agent-1', OWNER)
      return (await shown(url))['last_seen']
    })
    .not.toBe(seen)
  expect(await etags()).toEqual(before)
  await registry.register({ agent_id: 'agent-1', name: 'Other', url: 'http://127.0.0.1:1/' }, OWNER)
  for (const [index, etag] of (await etags()).entries()) expect(etag).not.toBe(before[index])
})

test('A20 - card: Last-Modified is the time of the first registration', async () => {
  const { url, registry } = await opened()
  const registered = Date.parse(registry.get('agent-1')?.registered_at ?? '')
  expect((await fetch(url)).headers.get('last-modified')).toBe(new Date(registered).toUTCString())
})

test('A20 - base URL: the public URL, and every cache may keep the card', async () => {
  const { url, base } = await opened({}, { publicUrl: 'https://broker.example/hub//' })
  const response = await fetch(url)
  expect(response.headers.get('cache-control')).toBe('public, max-age=60')
  expect(await response.json()).toMatchObject({ url: 'https://broker.example/hub/a2a/agent-1/v0.3' })
  expect(await shown(base + CARD, V1)).toMatchObject({
    supportedInterfaces: [{ url: 'https://broker.example/hub/a2a' }],
  })
  for (const text of [
    'broker.example',
    'ftp://x',
    'https://x/?a=1',
    'https://x/#a',
    'https://u:secret@x',
    'https://',
    '',
  ]) {
    expect(() => readPublicUrl(text), text).toThrow(/allowed: an absolute http or https URL/)
    expect(() => readPublicUrl(text)).not.toThrow('secret')
  }
})

/** The interface that a request with this Host sees; fetch does not let one set it. */
async function urlFor({ port }: GatewayHost, host: string | undefined): Promise<unknown> {
  const headers = { ...V1, ...(host === undefined ? {} : { host }) }
  const request = httpRequest({ port, path: `/a2a/agent-1${CARD}`, setHost: false, headers })
  const answered = Promise.withResolvers<string>()
  request.on('response', (response) => answered.resolve(text(response))).on('error', answered.reject)
  request.end()
  const card = JSON.parse(await answered.promise) as { supportedInterfaces: { url: string }[] }
  return card.supportedInterfaces[0]?.url
}

test('A20 - base URL: else the Host of the request, if it can be part of a URL, for this client alone', async () => {
  const host = await opened()
  const own = `http://127.0.0.1:${host.port}/a2a/agent-1`
  expect((await fetch(host.url)).headers.get('cache-control')).toBe('private, max-age=60')
  expect(await urlFor(host, 'broker.example:9090')).toBe('http://broker.example:9090/a2a/agent-1')
  expect(await urlFor(host, '[::1]:9090')).toBe('http://[::1]:9090/a2a/agent-1')
  for (const forged of ['user@evil.example', 'a/b', 'a?b', 'a"b', 'a b', '', `${'x'.repeat(300)}.example`]) {
    expect(await urlFor(host, forged), forged).toBe(own)
  }
  // Each host has a card of its own.
  expect(await urlFor(host, 'one.example')).toBe('http://one.example/a2a/agent-1')
  expect(await urlFor(host, 'two.example')).toBe('http://two.example/a2a/agent-1')
})

test('A20 - official SDKs: from the base URL with its slash both find the interface that they speak', async () => {
  for (const options of [{}, AUTHENTICATED]) {
    const { base } = await opened({ capabilities: { streaming: true } }, options)
    const v10 = await new DefaultAgentCardResolver().resolve(`${base}/a2a/agent-1/`)
    expect(v10.supportedInterfaces).toMatchObject([
      { url: `${base}/a2a/agent-1`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${base}/a2a/agent-1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url: `${base}/a2a/agent-1/v0.3`, protocolVersion: '0.3' },
    ])
    const compatible = new DefaultAgentCardResolver({ legacyCompat: { enabled: true } })
    expect((await compatible.resolve(`${base}/a2a/agent-1/`)).capabilities).toMatchObject({ streaming: true })
    const v03 = await new V03CardResolver().resolve(`${base}/a2a/agent-1/`)
    expect(v03).toMatchObject({
      url: `${base}/a2a/agent-1/v0.3`,
      preferredTransport: 'JSONRPC',
      protocolVersion: '0.3.0',
    })
    // The platform's card is one that they can read.
    expect((await new DefaultAgentCardResolver().resolve(base)).supportedInterfaces).toHaveLength(1)
    expect(await new V03CardResolver().resolve(base)).toMatchObject({ url: `${base}/a2a` })
  }
})

test('A20 - official SDKs: a client that lost the slash of the base URL learns of it', async () => {
  const { base } = await opened()
  await expect(new DefaultAgentCardResolver().resolve(`${base}/a2a/agent-1`)).rejects.toThrow('404')
  const lost = await fetch(`${base}/a2a${CARD}`)
  expect([lost.status, await lost.json()]).toEqual([
    404,
    {
      error: 'AGENT_NOT_FOUND',
      message: `this path has no agent_id; the base URL of an agent must end in a slash: ${base}/a2a/{agent_id}/`,
      details: [],
    },
  ])
})

test('A20 - platform: its card is one of A2A 1.0, and names no agents to callers without a token', async () => {
  const { base } = await opened({ name: 'Secret agent' }, AUTHENTICATED)
  for (const headers of [V1, {}]) {
    const card = await shown(base + CARD, { ...headers })
    expect(card).toMatchObject({
      supportedInterfaces: [{ url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      securityRequirements: [{ schemes: { bearer: { list: ['a2a'] } } }],
      skills: [{ id: 'agents', description: expect.stringContaining(`${base}/a2a/{agent_id}/`) }],
    })
    expect(JSON.stringify(card)).not.toMatch(/Secret|agent-1/)
  }
  expect(strictProblems(await shown(base + CARD, V1))).toEqual([])
})

test('A20 - extended card: one that an agent sends is shown as its public card is, and signed', () => {
  const keys = openCardKeys(keyFile(newPem()))
  onTestFinished(() => keys[Symbol.dispose]())
  const platform = { name: 'p', version: '1', description: 'd' }
  const cards = new Cards({
    platform,
    publicUrl: 'https://broker.example',
    keys,
    bearer: true,
    native: true,
    registered: () => undefined,
  })
  const request = new IncomingMessage(new Socket())
  const original = { name: 'One', url: 'http://10.0.0.7', skills: [{ id: 's', name: 'S' }], signatures: [{}] }
  const extended = cards.extended(original, 'agent-1', '1.0', request)
  expect(strictProblems(extended)).toEqual([])
  expect(extended).toMatchObject({
    supportedInterfaces: [
      { url: 'https://broker.example/a2a/agent-1', protocolBinding: 'JSONRPC' },
      { url: 'https://broker.example/a2a/agent-1', protocolBinding: 'HTTP+JSON' },
      { url: 'https://broker.example/a2a/agent-1/v0.3' },
    ],
    signatures: [{ protected: expect.any(String) }],
  })
  const old = cards.extended(original, 'agent-1', 'both', request)
  expect(old).toMatchObject({ url: 'https://broker.example/a2a/agent-1/v0.3' })
  expect(old).not.toHaveProperty('signatures')
})

test('A20 - hostile cards: the largest card, the deepest and one with odd names are shown whole', async () => {
  const { base, registry } = await opened()
  const deep = (levels: number): object => (levels === 0 ? { end: 'x' } : { down: deep(levels - 1) })
  const cards = {
    large: { skills: Array.from({ length: 1_500 }, (_, index) => ({ id: `s${index}`, name: 'N' })) },
    deep: { capabilities: { extensions: [{ uri: 'u', params: deep(120) }] } },
    names: JSON.parse(
      '{"__proto__": {"url": "http://evil.example"}, "constructor": 1, "toJSON": "x", "own": {"__proto__": 2}}',
    ),
  }
  for (const [name, more] of Object.entries(cards)) {
    await registry.register({ agent_id: name, name, url: 'http://127.0.0.1:1/', ...more }, OWNER)
    const url = `${base}/a2a/${name}${CARD}`
    expect(strictProblems(await shown(url, V1))).toEqual([])
    expect(await shown(url)).toMatchObject({ agent_id: name, url: `${base}/a2a/${name}/v0.3` })
  }
  expect(await shown(`${base}/a2a/large${CARD}`, V1)).toMatchObject({ skills: { length: 1_500 } })
  expect(await (await fetch(`${base}/a2a/names${CARD}`)).text()).toContain('"toJSON":"x"')
})

/** A card that cannot be printed. */
const UNPRINTABLE: AgentCard = {
  agent_id: 'a1',
  name: 'A',
  url: 'http://127.0.0.1:1/',
  protocolVersions: [],
  registered_by: 'me',
  registered_at: '',
  last_seen: '',
  capabilities: {
    toJSON() {
      throw new Error('unprintable')
    },
  },
}

test('gateway - a card that cannot be shown, now or later, is a closed connection and a log line', async () => {
  const { broker, system, requests, registry } = await openGateway()
  const failures: unknown[] = []
  const found = {
    authorization: registry.authorization,
    heartbeat: async () => {},
    list: () => [],
    onChange: () => () => {},
    get: (agentId: string) => (agentId === 'a1' ? UNPRINTABLE : undefined),
    find: async (agentId: string) => (agentId === 'later' ? UNPRINTABLE : registry.find(agentId)),
  }
  const hooks = { failed: (error: unknown) => void failures.push(error) }
  const connector = a2aConnector({ broker, system, requests, registry: found }, { hooks })
  const server = await testServer(connector.handler)
  onTestFinished(() => connector.close(0))
  const base = `${server.url}/a2a`
  for (const agentId of ['a1', 'later']) {
    await expect(fetch(`${base}/${agentId}/.well-known/agent-card.json`)).rejects.toThrow('fetch failed')
  }
  expect(failures).toEqual([new Error('unprintable'), new Error('unprintable')])
  expect((await fetch(`${base}/none/.well-known/agent-card.json`)).status).toBe(404)
})

test("card - an agent without a url has the gateway's address, and serving it reports no failure", async () => {
  const host = await openGateway()
  await host.registry.register({ agent_id: 'puller', name: 'Puller', a2a: { pull: true } }, { clientId: 'alice' })
  const url = `${host.base}/a2a/puller/.well-known/agent-card.json`
  for (const headers of [{}, { 'a2a-version': '1.0' }]) {
    const shown = await (await fetch(url, { headers })).text()
    expect(shown).toContain(`${host.base}/a2a/puller`)
    expect(shown).not.toContain('inbox.invalid')
  }
  expect([host.connector.inFlight('puller'), host.failures]).toEqual([0, []])
})
