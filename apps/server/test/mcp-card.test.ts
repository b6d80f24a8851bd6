import { documentedMcpRoutes, SUPPORTED_VERSIONS } from '@signalbox/connector-mcp'
import { Check } from 'typebox/value'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { expect, test } from 'vitest'

import { VERSION } from '../src/version.ts'
import { OFFICIAL_CLIENTS } from './support/official-clients.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const CARD = '/mcp/server-card'
const CATALOG = '/.well-known/ai-catalog.json'

interface Card {
  readonly name: string
  readonly remotes: readonly [{ readonly url: string; readonly headers?: unknown }]
}

async function json<Document>(url: string): Promise<Document> {
  return (await (await fetch(url)).json()) as Document
}

test('M28 - the catalog leads to the card, and the card to the endpoint', async () => {
  const { http } = await serve()
  const { host, hostname } = new URL(http.url)
  expect(await json(http.url + CATALOG)).toEqual({
    specVersion: '1.0',
    entries: [
      {
        identifier: `urn:air:${hostname}:mcp:signalbox`,
        displayName: 'Signalbox',
        type: 'application/mcp-server-card+json',
        url: `http://${host}${CARD}`,
      },
    ],
  })
  const card = await json<Card>(http.url + CARD)
  expect(card).toEqual({
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'io.github.signalbox/signalbox',
    version: VERSION,
    description: 'A message broker: queues, events, stored events, commands, queries and agents as tools.',
    title: 'Signalbox',
    remotes: [{ type: 'streamable-http', url: `${http.url}/mcp`, supportedProtocolVersions: SUPPORTED_VERSIONS }],
  })
  const [newest] = OFFICIAL_CLIENTS
  expect(await (await newest!.connect(card.remotes[0].url)).tools()).toHaveLength(TOOL_NAMES.length)
})

test('M28 - documents contain PUBLIC_URL and never the Host of the request', async () => {
  const { http } = await serve({ publicUrl: 'https://broker.example/base/' })
  const catalog = await fetch(http.url + CATALOG)
  expect(await catalog.json()).toMatchObject({
    entries: [{ identifier: 'urn:air:broker.example:mcp:signalbox', url: `https://broker.example/base${CARD}` }],
  })
  expect(catalog.headers.get('cache-control')).toBe('public, max-age=3600')
  expect((await json<Card>(http.url + CARD)).remotes[0].url).toBe('https://broker.example/base/mcp')
})

test('M28 - the card needs no token, and asks for one if the endpoint does', async () => {
  const { http } = await serve(trusting(issuer()))
  expect((await json<Card>(http.url + CARD)).remotes[0].headers).toEqual([
    { name: 'Authorization', description: 'Bearer and a token.', isRequired: true, isSecret: true },
  ])
  expect((await fetch(http.url + CATALOG)).status).toBe(200)
})

test('M28 - pages of every origin may read the documents, and clients revalidate them', async () => {
  const { http } = await serve()
  for (const [path, type] of [
    [CARD, 'application/mcp-server-card+json'],
    [CATALOG, 'application/json'],
  ] as const) {
    const first = await fetch(http.url + path, { headers: { origin: 'https://anywhere.example' } })
    expect([first.status, first.headers.get('content-type')]).toEqual([200, type])
    expect(first.headers.get('access-control-allow-origin')).toBe('*')
    expect(first.headers.get('access-control-allow-credentials')).toBeNull()
    expect(first.headers.get('cache-control')).toBe('private, max-age=3600')
    const again = await fetch(http.url + path, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    expect((await fetch(http.url + path, { method: 'POST' })).status).toBe(405)
  }
})

test('MGMT-14 - the documents match their schemas in the OpenAPI document', async () => {
  for (const config of [{}, trusting(issuer())]) {
    const { http } = await serve(config)
    for (const { path, responses } of await documentedMcpRoutes({ oauth: false })) {
      const { schema, mediaType } = responses[200] ?? {}
      const response = await fetch(http.url + path)
      const document: unknown = await response.json()
      expect(response.headers.get('content-type')).toBe(mediaType)
      expect([path, document, schema !== undefined && Check(schema, document)]).toEqual([path, document, true])
    }
  }
})

test('M28 - without the MCP connector there are no documents', async () => {
  const { http } = await serve({ connectors: { mcp: { enable: false } } })
  for (const path of [CARD, CATALOG]) expect((await fetch(http.url + path)).status).toBe(404)
})
