import { request } from 'node:http'

import type { Authenticator } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import type { McpCardOptions } from '../src/index.ts'
import { HOST_KINDS, startHost } from './mcp-host.ts'

const CARD = { name: 'com.example/broker', description: 'A broker.' } satisfies McpCardOptions
const CATALOG_PATH = '/.well-known/ai-catalog.json'

/** Sends a GET with a Host header, which fetch does not allow. */
function getAs(host: string, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { host } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(text))
    })
    sent.on('error', reject).end()
  })
}

test.each(HOST_KINDS)('M28 - %s: the catalog leads to the card, which names the endpoint', async (kind) => {
  const { url } = await startHost({ card: CARD, serverInfo: { name: 'b', version: '2.0.0' } }, kind)
  const { origin, host, hostname } = new URL(url)
  const catalog = await fetch(origin + CATALOG_PATH)
  expect(catalog.headers.get('access-control-allow-origin')).toBe('*')
  expect(catalog.headers.get('cache-control')).toBe('private, max-age=3600')
  expect(await catalog.json()).toEqual({
    specVersion: '1.0',
    entries: [
      {
        identifier: `urn:air:${hostname}:mcp:broker`,
        displayName: 'b',
        type: 'application/mcp-server-card+json',
        url: `http://${host}/mcp/server-card`,
      },
    ],
  })
  const card = await fetch(`${origin}/mcp/server-card`)
  expect(card.headers.get('content-type')).toBe('application/mcp-server-card+json')
  expect(await card.json()).toMatchObject({ ...CARD, version: '2.0.0', remotes: [{ url: `http://${host}/mcp` }] })
})

test('M28 - a client that has the card gets 304, HEAD gets the headers, and other methods get 405', async () => {
  const { url } = await startHost({ card: CARD })
  const place = `${new URL(url).origin}/mcp/server-card`
  const { headers } = await fetch(place)
  const etag = headers.get('etag') ?? ''
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    expect([known, (await fetch(place, { headers: { 'if-none-match': known } })).status]).toEqual([known, 304])
  }
  expect((await fetch(place, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  const head = await fetch(place, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([
    200,
    headers.get('content-length'),
    '',
  ])
  const refused = await fetch(place, { method: 'POST' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('M28 - the documents name the public URL, or the host of the request if it can be part of a URL', async () => {
  const { url } = await startHost({ card: CARD })
  const { host, origin } = new URL(url)
  const remote = async (asked: string): Promise<unknown> => {
    const card: unknown = JSON.parse(await getAs(asked, `${origin}/mcp/server-card`))
    return card
  }
  expect(await remote('broker.example:8443')).toMatchObject({ remotes: [{ url: 'http://broker.example:8443/mcp' }] })
  expect(await remote('[::1]:9090')).toMatchObject({ remotes: [{ url: 'http://[::1]:9090/mcp' }] })
  expect(await remote('a"b/../c')).toMatchObject({ remotes: [{ url: `http://${host}/mcp` }] })

  const known = await startHost({ card: { ...CARD, publicUrl: 'https://broker.example/base//' } })
  const answer = await fetch(`${new URL(known.url).origin}/mcp/server-card`)
  expect(answer.headers.get('cache-control')).toBe('public, max-age=3600')
  expect(await answer.json()).toMatchObject({ remotes: [{ url: 'https://broker.example/base/mcp' }] })
})

test('M28 - the card asks for a token if callers need one, and needs none itself', async () => {
  const authenticator: Authenticator = {
    authenticate: () => {
      throw new Error('not called')
    },
  }
  const { url, failures } = await startHost({ card: CARD, authenticator })
  const card = await fetch(`${new URL(url).origin}/mcp/server-card`)
  expect(await card.json()).toMatchObject({ remotes: [{ headers: [{ name: 'Authorization', isRequired: true }] }] })
  expect(failures).toEqual([])
})

test.each<[option: string, card: McpCardOptions]>([
  ['card.name', { ...CARD, name: 'broker' }],
  ['card.description', { ...CARD, description: '' }],
  ['card.description', { ...CARD, description: 'x'.repeat(101) }],
  ['ftp://broker', { ...CARD, publicUrl: 'ftp://broker' }],
  ['?a=1', { ...CARD, publicUrl: 'http://broker?a=1' }],
  ['//…@broker', { ...CARD, publicUrl: 'http://user:secret@broker' }],
])('M28 - an option that is not allowed is refused: %s', async (named, card) => {
  const refusal = await startHost({ card }).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(RangeError)
  expect(String(refusal)).toContain(named)
  expect(String(refusal)).not.toContain('secret')
})
