import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { POLICY_ACTIONS } from '@signalbox/broker-core'
import { documentedMcpRoutes } from '@signalbox/connector-mcp'
import { scopeOf, SCOPES } from '@signalbox/http-kit'
import { groupFolder, testFile } from '@signalbox/testkit/test-folder'
import { Check } from 'typebox/value'
import { TOOLS } from '@signalbox/testkit/mcp-tools'
import { describe, expect, test } from 'vitest'

import { fromFlags } from '../src/config/flags.ts'
import type { PartialConfig } from '../src/config/load.ts'
import { createConfig, loadConfig } from '../src/config/load.ts'
import { startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve, serveAll, serveLogged } from './support/server.ts'
import { governed, issuer, keySet } from './support/tokens.ts'

const PUBLIC_URL = 'https://broker.example.com'
const RESOURCE = `${PUBLIC_URL}/mcp`
const ISSUER = 'https://id.example.com'
const METADATA = '/.well-known/oauth-protected-resource'
const CLAIMS = { iss: ISSUER, aud: RESOURCE, ClientID: undefined, sub: 'alice' }
const ALL = 'signalbox:read signalbox:write signalbox:agents'
const one = issuer()
const jwksFile = join(groupFolder(), 'jwks.json')
writeFileSync(jwksFile, keySet(one))

function oauth(more: object = {}, authentication: object = {}): PartialConfig {
  return {
    publicUrl: PUBLIC_URL,
    authentication: {
      enable: true,
      jwksFile,
      issuer: ISSUER,
      audience: [RESOURCE],
      oauth: { enable: true, ...more },
      ...authentication,
    },
  }
}

const server = serveAll(oauth)

/** The reason of a token without the scope of a call. */
const LACKS = 'the scopes of the token do not allow this call'

function challenge(error?: string, scope = ALL, description?: string): string {
  const text = description === undefined ? '' : `error_description="${description}", `
  const reason = error === undefined ? '' : `error="${error}", ${text}`
  return `Bearer ${reason}resource_metadata="${PUBLIC_URL}${METADATA}/mcp", scope="${scope}"`
}

function bearer(scope?: string, claims: object = {}): Promise<string> {
  return one.bearer('', { ...CLAIMS, scope, ...claims })
}

const STATELESS_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

interface Sent {
  readonly status: number
  readonly challenge: string | null
  readonly body: unknown
}

/** A call of one of both eras at `/mcp`. */
async function call(
  base: string,
  era: 'legacy' | 'stateless',
  method: string,
  params: Record<string, unknown>,
  authorization?: string,
): Promise<Sent> {
  const stateless = era === 'stateless'
  const response = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(stateless ? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method } : {}),
      ...(stateless && typeof params['name'] === 'string' ? { 'mcp-name': params['name'] } : {}),
      ...(authorization === undefined ? {} : { authorization }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method,
      params: stateless ? { ...params, _meta: STATELESS_META } : params,
    }),
  })
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    body: await response.json(),
  }
}

function tool(base: string, name: string, args: object, authorization: string): Promise<Sent> {
  return call(base, 'stateless', 'tools/call', { name, arguments: args }, authorization)
}

const UNAUTHENTICATED = { jsonrpc: '2.0', id: 7, error: { code: -32010, message: 'Authentication failed' } }
const INSUFFICIENT = { id: 7, error: { code: -32010, message: expect.stringContaining('scopes') } }

describe('settings', () => {
  test.each<[string, () => PartialConfig, RegExp]>([
    [
      'without authentication',
      () => oauth({}, { enable: false }),
      /^authentication\.oauth\.enable: authentication is off/,
    ],
    ['without an issuer', () => oauth({}, { issuer: '' }), /^authentication\.issuer: OAuth is on and has no issuer/],
    ['without a public URL', () => ({ ...oauth(), publicUrl: '' }), /^publicUrl: OAuth is on and has no public URL/],
    [
      'without an audience',
      () => oauth({}, { audience: [] }),
      /^authentication\.audience: .*"https:\/\/broker.example.com\/mcp"/,
    ],
    ['with the audience of another', () => oauth({}, { audience: ['signalbox'] }), /^authentication\.audience: /],
    ['with a wrong public URL', () => ({ ...oauth(), publicUrl: 'https://broker.example.com?x' }), /^publicUrl: /],
    [
      'with an issuer that is no URL',
      () => oauth({}, { issuer: 'me' }),
      /^authentication\.oauth\.authorizationServers: /,
    ],
    ['with a scope that breaks the header', () => oauth({ scopePrefix: '"' }), /^authentication\.oauth\.scopePrefix: /],
  ])('S10 - the server does not start %s', (_name, settings, problem) => {
    expect(() => createConfig(settings())).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', problems: [expect.stringMatching(problem)] }),
    )
  })

  test('S10 - an issuer that is no URL is allowed with authorization servers', () => {
    const servers = ['https://login.example.com/v2.0']
    expect(() => createConfig(oauth({ authorizationServers: servers }, { issuer: 'me' }))).not.toThrow()
  })
})

describe('metadata', () => {
  test('S10 - every caller reads it, and no Host header changes it', async () => {
    const { http } = server()
    for (const path of [METADATA, `${METADATA}/mcp`]) {
      const response = await fetch(http.url + path, {
        headers: { host: 'evil.example', origin: 'https://any.example', authorization: 'Bearer bad' },
      })
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(await response.json()).toEqual({
        resource: RESOURCE,
        authorization_servers: [ISSUER],
        scopes_supported: ALL.split(' '),
        bearer_methods_supported: ['header'],
      })
    }
    const head = await fetch(http.url + METADATA, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect((await fetch(http.url + METADATA, { method: 'POST', body: '{}' })).status).toBe(405)
    expect((await fetch(`${http.url}${METADATA}/other`)).status).toBe(404)
  })

  test('S10 - pages of every origin read it, whatever CORS_ALLOW_ORIGINS is; other answers follow the settings', async () => {
    const { http } = await serve({ ...oauth(), cors: { allowOrigins: ['https://app.example.com'] } })
    const headers = { origin: 'https://other.example', 'access-control-request-method': 'GET' }
    const preflight = await fetch(http.url + METADATA, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-headers': 'mcp-protocol-version' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-headers')).toBe('*')
    const answer = await fetch(http.url + METADATA, { headers: { origin: 'https://other.example' } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    const refused = await fetch(`${http.url}/ping`, { headers: { origin: 'https://app.example.com' } })
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
    expect(refused.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate')
  })

  test('S10 - it names the tools of this server, other authorization servers and the prefix', async () => {
    const servers = ['https://login.example.com/v2.0', 'https://other.example.com']
    const settings = oauth({ authorizationServers: servers, scopePrefix: 'api://box/' })
    const { http } = await serve({ ...settings, connectors: { a2a: { enable: false } } })
    expect(await (await fetch(http.url + METADATA)).json()).toMatchObject({
      authorization_servers: servers,
      scopes_supported: ['api://box/signalbox:read', 'api://box/signalbox:write'],
    })
    const { challenge: named } = await call(http.url, 'legacy', 'ping', {})
    expect(named).toContain('scope="api://box/signalbox:read api://box/signalbox:write"')
    const prefixed = await bearer('api://box/signalbox:read')
    expect(await tool(http.url, 'channel_list', {}, prefixed)).toMatchObject({ status: 200 })
    expect(await tool(http.url, 'queue_send', { channel: 'q', body: 'x' }, prefixed)).toMatchObject({
      status: 403,
      challenge: expect.stringContaining('scope="api://box/signalbox:write"'),
    })
  })

  test('S10 - a public URL with a path is part of the resource', async () => {
    const publicUrl = 'https://example.com/broker/'
    const { http } = await serve({ ...oauth({}, { audience: ['https://example.com/broker/mcp'] }), publicUrl })
    for (const path of ['', '/mcp', '/broker/mcp']) {
      const response = await fetch(http.url + METADATA + path)
      expect(await response.json()).toMatchObject({ resource: 'https://example.com/broker/mcp' })
    }
    const { challenge: named } = await call(http.url, 'legacy', 'ping', {})
    expect(named).toContain(`resource_metadata="https://example.com${METADATA}/broker/mcp"`)
  })

  test('S10 - without the mode there is no metadata', async () => {
    const { authentication, ...rest } = oauth()
    const { http } = await serve({ ...rest, authentication: { ...authentication, oauth: { enable: false } } })
    expect((await fetch(http.url + METADATA)).status).toBe(404)
    expect(await call(http.url, 'legacy', 'ping', {})).toEqual({ status: 200, challenge: null, body: UNAUTHENTICATED })
    const stateless = await call(http.url, 'stateless', 'server/discover', {})
    expect(stateless).toEqual({ status: 401, challenge: 'Bearer realm="signalbox"', body: UNAUTHENTICATED })
    // Scopes have no effect either.
    const token = await bearer('signalbox:read')
    expect(await tool(http.url, 'queue_send', { channel: 'q', body: 'x' }, token)).toMatchObject({ status: 200 })
  })
})

test('MGMT-14 - the OpenAPI document has the routes of the metadata, with the mode only', async () => {
  const { http, api } = await serve({ ...oauth(), api: { host: '127.0.0.1' } })
  const operator = await one.bearer('admin', { ...CLAIMS, roles: ['admin'], scope: 'signalbox:manage' })
  const document = (await (
    await fetch(`${api.url}/openapi.json`, { headers: { authorization: operator } })
  ).json()) as { paths: Record<string, object> }
  const documented = Object.keys(document.paths).filter((path) => path.startsWith(METADATA))
  expect(documented.toSorted()).toEqual([METADATA, `${METADATA}/mcp`])
  const routes = (await documentedMcpRoutes({ oauth: true })).filter(({ path }) => path.startsWith(METADATA))
  for (const { path, responses } of routes) {
    const metadata: unknown = await (await fetch(http.url + path)).json()
    const { schema } = responses[200] ?? {}
    expect([metadata, schema !== undefined && Check(schema, metadata)]).toEqual([metadata, true])
  }
  const { api: without } = await serve()
  const { paths } = (await (await fetch(`${without.url}/openapi.json`)).json()) as { paths: Record<string, object> }
  expect(Object.keys(paths).filter((path) => path.startsWith(METADATA))).toEqual([])
})

describe('401', () => {
  const past = Math.floor(Date.now() / 1000) - 60
  const AUDIENCE = 'it is for another resource (aud)'
  const SCHEME = 'the Authorization header is not of the form Bearer TOKEN'
  const TOKENS: readonly (readonly [name: string, reason: string, token: () => Promise<string>])[] = [
    ['another audience', AUDIENCE, () => bearer(ALL, { aud: 'https://other.example.com/mcp' })],
    ['the audience of the server without the path', AUDIENCE, () => bearer(ALL, { aud: PUBLIC_URL })],
    ['no audience', AUDIENCE, () => bearer(ALL, { aud: undefined })],
    ['another issuer', 'it is of another issuer (iss)', () => bearer(ALL, { iss: 'https://evil.example.com' })],
    ['expired', 'it has expired (exp)', () => bearer(ALL, { exp: past })],
    ['not valid yet', 'it is not valid yet (nbf)', () => bearer(ALL, { nbf: past + 3600 })],
    ['another key', 'its signature does not fit the key', () => issuer().bearer('', { ...CLAIMS, scope: ALL })],
    ['garbage', 'it is not a signed JWT', async () => 'Bearer garbage'],
    ['another scheme', SCHEME, async () => 'Basic YTpi'],
  ]

  test.each(['legacy', 'stateless'] as const)(
    'S10 - every %s request without a token gets the challenge',
    async (era) => {
      const { http } = server()
      for (const method of ['initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'unknown']) {
        const refused = { status: 401, challenge: challenge(), body: UNAUTHENTICATED }
        expect(await call(http.url, era, method, {})).toEqual(refused)
      }
    },
  )

  test.each(TOKENS)('S10 - a bad token gets the challenge with the reason: %s', async (_name, reason, make) => {
    const { http } = server()
    const token = await make()
    const described = challenge('invalid_token', ALL, reason)
    for (const era of ['legacy', 'stateless'] as const) {
      const refused = { status: 401, challenge: described, body: UNAUTHENTICATED }
      expect(await call(http.url, era, 'tools/list', {}, token)).toEqual(refused)
    }
  })

  test('S1, S10 - the log has a line for each distinct reason at once, and no part of a token', async () => {
    const { server: logging, lines } = await serveLogged(oauth())
    const secrets: string[] = []
    for (const [, , make] of [...TOKENS, ...TOKENS]) {
      const token = await make()
      secrets.push(token.split(' ')[1] ?? '')
      await call(logging.http.url, 'legacy', 'ping', {}, token)
    }
    const found = lines.filter(({ msg }) => msg === 'authentication failed')
    const reasons = [...new Set(TOKENS.map(([, reason]) => reason))]
    expect(found.map((line) => line['count'])).toEqual(reasons.map(() => 1))
    for (const [i, reason] of reasons.entries()) expect(found[i]?.['reason']).toContain(reason)
    for (const secret of secrets) expect(JSON.stringify(lines)).not.toContain(secret)
  })

  test('S10 - every method of every revision gets the challenge, and so does a notification', async () => {
    const { http } = server()
    for (const method of ['GET', 'DELETE', 'PUT', 'POST']) {
      for (const version of ['2025-03-26', '2025-11-25', '2026-07-28', 'x']) {
        const response = await fetch(`${http.url}/mcp`, {
          method,
          headers: { 'mcp-protocol-version': version, accept: 'text/event-stream', 'content-type': 'application/json' },
          ...(method === 'POST' ? { body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' } : {}),
        })
        await response.text()
        const seen = [method, version, response.status, response.headers.get('www-authenticate')]
        expect(seen).toEqual([method, version, 401, challenge()])
      }
    }
    // With a token the methods are what they were.
    const headers = { authorization: await bearer(ALL), 'mcp-protocol-version': '2026-07-28' }
    expect((await fetch(`${http.url}/mcp`, { headers })).status).toBe(405)
    expect((await fetch(`${http.url}/mcp`, { method: 'PUT', headers })).status).toBe(405)
  })

  test('S10 - a token in the query has no effect', async () => {
    const { http } = server()
    const [, token] = (await bearer(ALL)).split(' ')
    const response = await fetch(`${http.url}/mcp?access_token=${token}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":7,"method":"ping"}',
    })
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, challenge()])
    await response.text()
  })

  test('S10 - one audience of several is enough', async () => {
    const { http } = await serve(oauth({}, { audience: [RESOURCE, 'b51b1e0c'] }))
    for (const aud of [[RESOURCE, 'https://id.example.com/userinfo'], 'b51b1e0c']) {
      expect(await call(http.url, 'legacy', 'ping', {}, await bearer(ALL, { aud }))).toMatchObject({ status: 200 })
    }
  })
})

describe('scopes', () => {
  test('S11 - each tool needs its scope, and the answer without it names the scope', async () => {
    const { http } = server()
    for (const { name, args, scope } of TOOLS) {
      const others = ALL.split(' ').filter((one) => one !== scope)
      const refused = { status: 403, challenge: challenge('insufficient_scope', scope, LACKS), body: INSUFFICIENT }
      expect([name, await tool(http.url, name, args, await bearer(others.join(' ')))]).toMatchObject([name, refused])
      expect([name, await tool(http.url, name, args, await bearer(scope))]).toMatchObject([name, { status: 200 }])
    }
  })

  test('S11 - requests of the older revisions get the same 403', async () => {
    const { http } = server()
    const params = { name: 'queue_send', arguments: { channel: 'q', body: 'x' } }
    const refused = await call(http.url, 'legacy', 'tools/call', params, await bearer('signalbox:read'))
    const answer = {
      status: 403,
      challenge: challenge('insufficient_scope', 'signalbox:write', LACKS),
      body: INSUFFICIENT,
    }
    expect(refused).toMatchObject(answer)
  })

  test('S11 - tools/list shows the tools that the scopes allow', async () => {
    const { http } = server()
    for (const scope of ['signalbox:read', 'signalbox:write', 'signalbox:agents']) {
      const answer = await rpc(http.url, 'tools/list', {}, { authorization: await bearer(`openid ${scope}`) })
      const { tools } = (answer as { result: { tools: { name: string }[] } }).result
      const expected = TOOLS.filter((tool) => tool.scope === scope)
      expect(tools.map(({ name }) => name)).toEqual(expected.map(({ name }) => name))
    }
  })

  test.each([undefined, '', 'openid', 'signalbox', 'signalbox:manage', 'SIGNALBOX:READ'])(
    'S11 - a token without a scope of the tools is refused at once, with all of them: %j',
    async (scope) => {
      const { http } = server()
      const token = await bearer(scope)
      const refused = {
        status: 403,
        challenge: challenge('insufficient_scope', ALL, 'the scopes of the token allow nothing here'),
      }
      for (const method of ['initialize', 'ping', 'tools/list']) {
        expect(await call(http.url, 'legacy', method, {}, token)).toMatchObject(refused)
      }
      expect(await call(http.url, 'stateless', 'server/discover', {}, token)).toMatchObject(refused)
      const stream = await fetch(`${http.url}/mcp`, { headers: { authorization: token, accept: 'text/event-stream' } })
      expect([stream.status, stream.headers.get('www-authenticate')]).toEqual([403, refused.challenge])
      await stream.text()
    },
  )

  test.each([
    ['scope, words', { scope: 'openid signalbox:read' }],
    ['scope, array', { scope: ['openid', 'signalbox:read'] }],
    ['scp, words', { scp: 'signalbox:read profile' }],
    ['scp, array', { scp: ['signalbox:read'] }],
    ['scope before scp', { scope: 'signalbox:read', scp: ['signalbox:write'] }],
  ])('S11 - scopes are in the claim: %s', async (_name, claims) => {
    const { http } = server()
    const token = await bearer(undefined, claims)
    expect(await tool(http.url, 'channel_list', {}, token)).toMatchObject({ status: 200 })
    expect(await tool(http.url, 'queue_send', { channel: 'q', body: 'x' }, token)).toMatchObject({ status: 403 })
  })

  test('S11 - a denial of the policy is no challenge: another scope would not help', async () => {
    const { http } = await serve({
      ...oauth(),
      ...governed({ actions: ['send', 'list'], channels: 'mine.*' }, { effect: 'deny' }),
    })
    const reads = await bearer('signalbox:read')
    const send = (channel: string, token: string) => tool(http.url, 'queue_send', { channel, body: 'x' }, token)
    const denied = { status: 200, challenge: null, body: { result: { isError: true } } }
    expect(await send('mine.q', reads)).toMatchObject({ status: 403 })
    expect(await send('other.q', reads)).toMatchObject(denied)
    expect(await send('other.q', await bearer(ALL))).toMatchObject(denied)
    expect(await send('mine.q', await bearer(ALL))).toMatchObject({ status: 200, body: { result: { isError: false } } })
    // The policy lets nobody see an agent, so the list is empty whatever the scopes are.
    const writes = await bearer('signalbox:write')
    expect(await tool(http.url, 'channel_list', {}, writes)).toMatchObject({ status: 403 })
    const agent = { agent_id: 'echo', message: 'hi' }
    expect(await tool(http.url, 'agent_send', agent, writes)).toMatchObject(denied)
  })

  test('S11 - invalid arguments are reported as such', async () => {
    const { http } = server()
    const answer = await tool(http.url, 'queue_send', { channel: 'q' }, await bearer('signalbox:read'))
    expect(answer).toMatchObject({ status: 200, body: { result: { isError: true } } })
  })

  test('S11 - scopes restrict a token at the other connectors too', async () => {
    const { http } = server()
    const agent = await startAgent(withResult('pong'))
    const post = async (path: string, body: string, authorization: string, type = 'application/json') => {
      const response = await fetch(http.url + path, {
        method: 'POST',
        headers: { 'content-type': type, authorization },
        body,
      })
      return { status: response.status, text: await response.text() }
    }
    const get = async (path: string, authorization: string) =>
      (await fetch(http.url + path, { headers: { authorization } })).status
    const [reads, writes, agents] = await Promise.all(
      ['signalbox:read', 'signalbox:write', 'signalbox:agents'].map((scope) => bearer(scope)),
    )
    const event = '{"specversion":"1.0","id":"1","source":"/x","type":"x","data":"x"}'
    const send = (token: string) => post('/ce/queue/send?channel=q', event, token, 'application/cloudevents+json')
    expect(await send(reads!)).toMatchObject({ status: 403, text: expect.stringContaining('FORBIDDEN') })
    expect(await send(writes!)).toMatchObject({ status: 202 })
    const card = { agent_id: 'echo', name: 'Echo', url: agent.url }
    expect(await post('/agents/register', JSON.stringify(card), writes!)).toMatchObject({ status: 403 })
    expect(await post('/agents/register', JSON.stringify(card), agents!)).toMatchObject({ status: 200 })
    expect(await get('/agents', writes!)).toBe(403)
    expect(await get('/agents', reads!)).toBe(200)
    const ask = '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}'
    expect(await post('/a2a/echo', ask, reads!)).toMatchObject({ text: expect.stringContaining('-32011') })
    expect(await post('/a2a/echo', ask, agents!)).toMatchObject({ text: expect.stringContaining('pong') })
  })

  test('S11 - a denial by scopes is counted', async () => {
    const { http, api } = await serve(oauth())
    await tool(http.url, 'queue_send', { channel: 'q', body: 'x' }, await bearer('signalbox:read'))
    const metrics = await (await fetch(`${api.url}/metrics`)).text()
    expect(metrics).toContain('broker_authorization_denials_total{action="send",pattern="queues"} 1')
  })
})

describe('callers', () => {
  test('S12 - the user names the caller, before the program that all users share', async () => {
    const { http, broker } = server()
    const callers: string[] = []
    broker.observe({
      accepted: (type, _channel, { clientId }) => {
        if (type === 'queues') callers.push(clientId)
      },
    })
    for (const claims of [
      { client_id: 'chat', sub: 'alice' },
      { client_id: 'chat', sub: 'bob' },
      { client_id: 'robot', sub: undefined },
      { client_id: 'chat', sub: 'x', ClientID: 'carol' },
    ]) {
      const token = await bearer(ALL, claims)
      expect(await tool(http.url, 'queue_send', { channel: 'q', body: 'x' }, token)).toMatchObject({ status: 200 })
    }
    expect(callers).toEqual(['alice', 'bob', 'robot', 'carol'])
  })

  test('S12 - roles count only with the scope signalbox:manage, and need no other scope', async () => {
    const { api } = await serve({ ...oauth(), api: { authentication: { enable: true } } })
    const status = async (scope: string): Promise<number> => {
      const authorization = await bearer(scope, { roles: ['Admin'] })
      return (await fetch(`${api.url}/api/snapshot`, { headers: { authorization } })).status
    }
    expect(await status(ALL)).toBe(403)
    expect(await status('signalbox:manage')).toBe(200)
  })
})

describe('docs/guides/oauth.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/oauth.md'), 'utf8')

  test('S10 - its configurations are complete', async () => {
    const files = [...page.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = '']) => yaml)
    expect(files).toHaveLength(3)
    for (const yaml of files) {
      const { config } = await loadConfig({ flags: fromFlags(['--config', testFile(yaml)]), env: {} })
      expect(config.authentication.oauth.enable).toBe(true)
    }
  })

  test('S11 - its table has the actions of each scope', () => {
    const [, table = ''] = /<!-- scopes -->([^]*?)<!-- \/scopes -->/.exec(page) ?? []
    const rows = [...table.matchAll(/^\| `(signalbox:\w+)` +\| ([^|]+)\|/gm)].map(([, scope, actions = '']) => [
      scope,
      new Set([...actions.matchAll(/`(\w+)`/g)].map(([, action]) => action)),
    ])
    const expected = SCOPES.map((scope) => [scope, new Set(POLICY_ACTIONS.filter((one) => scopeOf(one) === scope))])
    expect(rows).toEqual(expected)
  })
})
