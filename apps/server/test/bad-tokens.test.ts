import { SignJWT, UnsecuredJWT } from 'jose'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testFile } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import type { Issuer } from './support/tokens.ts'
import { issuer, keySet } from './support/tokens.ts'

const one = issuer('one')
const SETTINGS = { issuer: 'https://id.example', audience: ['signalbox'] }
const CLAIMS = { iss: 'https://id.example', aud: 'signalbox' }

const soon = () => Math.floor(Date.now() / 1000) + 60

/** An Authorization header with good claims but for these. */
function bearer(clientId: string, claims: object = {}, by: Issuer = one): Promise<string> {
  return by.bearer(clientId, { ...CLAIMS, ...claims })
}

/** Signed with the text of the public key, which everybody has. */
async function confused(): Promise<string> {
  const token = await new SignJWT({ ...CLAIMS, ClientID: 'alice', exp: soon() })
    .setProtectedHeader({ alg: 'HS256', kid: 'one' })
    .sign(new TextEncoder().encode(one.pem))
  return `Bearer ${token}`
}

/** Lines of a request's head: what the callers of this list try. */
const BAD: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  'no token': async () => [],
  'an empty header': async () => ['Authorization:'],
  'an empty token': async () => ['Authorization: Bearer '],
  'two headers': async () => [`Authorization: ${await bearer('alice')}`, `Authorization: ${await bearer('alice')}`],
  'another scheme': async () => [`Authorization: Basic ${btoa('alice:alice')}`],
  'another name of the scheme': async () => [`Authorization: ${(await bearer('alice')).replace('Bearer', 'JWT')}`],
  garbage: async () => ['Authorization: Bearer \u00ff\u00fe.not.a.token'],
  'alg none': async () => {
    const unsigned = new UnsecuredJWT({ ...CLAIMS, ClientID: 'alice', exp: soon() }).encode()
    return [`Authorization: Bearer ${unsigned}`]
  },
  'HS256 signed with the public key': async () => [`Authorization: ${await confused()}`],
  'an unknown kid': async () => [`Authorization: ${await bearer('alice', {}, issuer('two'))}`],
  "a known kid, and another's key": async () => [`Authorization: ${await bearer('alice', {}, issuer('one'))}`],
  expired: async () => [`Authorization: ${await bearer('alice', { exp: soon() - 120 })}`],
  'not yet valid': async () => [`Authorization: ${await bearer('alice', { nbf: soon() })}`],
  'another issuer': async () => [`Authorization: ${await bearer('alice', { iss: 'https://id.example.evil.com' })}`],
  'another audience': async () => [`Authorization: ${await bearer('alice', { aud: ['others'] })}`],
  'no ClientID': async () => [`Authorization: ${await bearer('', { ClientID: undefined })}`],
  'an empty ClientID': async () => [`Authorization: ${await bearer('')}`],
  'a ClientID of 10 KiB': async () => [`Authorization: ${await bearer('a'.repeat(10_240))}`],
  'a ClientID with CR and LF': async () => [`Authorization: ${await bearer('alice\r\nX-Admin: yes')}`],
  'a token of 1 MiB': async () => [`Authorization: Bearer ${'x'.repeat(1_048_576)}`],
}

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

/** A way in of each family, and how it says no. */
const WAYS = [
  { listener: 'http', request: 'POST /mcp', body: PING, no: /^HTTP\/1\.1 200 .*"id":1,"error":\{"code":-32010,/s },
  { listener: 'http', request: 'POST /a2a/planner', body: PING, no: /^HTTP\/1\.1 200 .*"code":-32010,/s },
  { listener: 'http', request: 'GET /a2a/planner/stream', body: '', no: /^HTTP\/1\.1 200 .*"code":-32010,/s },
  { listener: 'http', request: 'POST /ce/queue/ack_all?channel=q', body: '', no: /^HTTP\/1\.1 401 / },
  { listener: 'http', request: 'GET /ce/subscribe/events?channel=q', body: '', no: /^HTTP\/1\.1 401 / },
  { listener: 'http', request: 'GET /agents', body: '', no: /^HTTP\/1\.1 401 / },
  { listener: 'api', request: 'GET /api/snapshot', body: '', no: /^HTTP\/1\.1 401 / },
  { listener: 'api', request: 'GET /metrics', body: '', no: /^HTTP\/1\.1 401 / },
] as const

/** What comes back for a head that fetch would not send. */
async function answerTo(base: string, request: string, body: string, lines: readonly string[]): Promise<string> {
  const connection = new RawConnection(base)
  const head = [`${request} HTTP/1.1`, 'Host: x', 'Connection: close', 'Content-Type: application/json', ...lines]
  await connection.write(`${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await connection.closed
  return connection.received
}

test('S1, S2 - no credential of the list admits a caller on any route, and each protocol answers with its own error', async () => {
  const { http, api } = await serve({
    authentication: { enable: true, jwksFile: testFile(keySet(one)), ...SETTINGS },
    api: { authentication: { enable: true } },
  })
  const base = { http: http.url, api: api.url }
  const good = await bearer('alice', { roles: ['Admin'] })
  for (const { listener, request, body, no } of WAYS) {
    if (request.includes('subscribe')) continue
    expect(await answerTo(base[listener], request, body, [`Authorization: ${good}`]), request).not.toMatch(no)
  }
  await Promise.all(
    Object.entries(BAD).map(async ([name, make]) => {
      const lines = await make()
      for (const { listener, request, body, no } of WAYS) {
        // Heads are bounded: such a token is not even read.
        const expected = name === 'a token of 1 MiB' || name === 'a ClientID of 10 KiB' ? orTooLarge(no) : no
        expect(await answerTo(base[listener], request, body, lines), `${name}: ${request}`).toMatch(expected)
      }
    }),
  )
})

function orTooLarge(no: RegExp): RegExp {
  return new RegExp(`${no.source}|^HTTP/1\\.1 431 |^$`, 's')
}

test('S1 - while new keys are unavailable, the current ones stay valid, for any answer of their server', async () => {
  const provider = { status: 200, text: keySet(one), asked: 0 }
  const server = await testServer((_request, response) => {
    provider.asked++
    // Slow as well: who holds a token that is known does not wait.
    setTimeout(() => response.writeHead(provider.status).end(provider.text), 50).unref()
  })
  const jwksUrl = `${server.url}/`
  const { http } = await serve({ authentication: { enable: true, jwksUrl } })
  const ping = async (by: Issuer) => rpc(http.url, 'ping', {}, { authorization: await by.bearer('alice') })
  const refused = { error: { code: -32010 } }
  expect(await ping(one)).toMatchObject({ result: {} })
  const next = issuer('next')
  for (const [status, text] of [
    [500, 'down'],
    [200, 'garbage'],
    [200, '{"keys":"none"}'],
    [302, ''],
  ] as const) {
    Object.assign(provider, { status, text, asked: 0 })
    // A token with a key that is not there has the set fetched, not at once where that was in vain.
    const asked = async (): Promise<number> => {
      expect(await ping(next), text).toMatchObject(refused)
      return provider.asked
    }
    await expect.poll(asked, { timeout: 20_000 }).toBe(1)
    expect(await ping(one), text).toMatchObject({ result: {} })
  }
  await server[Symbol.asyncDispose]()
  expect(await ping(next)).toMatchObject(refused)
  expect(await ping(one)).toMatchObject({ result: {} })
})
