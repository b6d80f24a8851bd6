import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { describe, expect, test } from 'vitest'

import { browse } from './support/authorization-server.ts'
import type { OAuthClient } from './support/oauth-clients.ts'
import { OAUTH_CLIENTS } from './support/oauth-clients.ts'
import { serveProtected } from './support/protected-server.ts'

const SCOPE = 'signalbox:read signalbox:write signalbox:agents'
const SEND = { channel: 'q', body: 'x' }

async function login(client: OAuthClient): Promise<void> {
  await client.finish(await browse(client.visits.at(-1)!))
}

describe.each(OAUTH_CLIENTS)('$name', ({ version, stepsUp, unauthorized, create }) => {
  async function loggedIn(url: URL) {
    const client = create(url)
    await expect(client.connect()).rejects.toBeInstanceOf(unauthorized)
    await login(client)
    return { client, connection: await client.connect() }
  }

  test('S10 - from its URL alone the client finds the authorization server, and calls as the user', async () => {
    const { as, url, resource, senders, metadata } = await serveProtected()
    const { client, connection } = await loggedIn(url)
    expect(connection.version).toBe(version)
    expect(await connection.tools()).toBe(TOOL_NAMES.length)
    expect(await connection.call('queue_send', SEND)).toBe(true)
    expect(senders).toEqual(['alice'])
    expect(client.refused).toEqual([{ status: 401, challenge: `Bearer ${metadata}, scope="${SCOPE}"` }])
    expect(as.asked).toEqual([{ scope: expect.stringContaining(SCOPE), resource }])
    expect(client.scope).toContain(SCOPE)
  })

  test('S11 - with too few scopes a call is refused, and names the missing one', async () => {
    const { as, url, senders, metadata } = await serveProtected()
    as.grants = ['signalbox:read']
    const { client, connection } = await loggedIn(url)
    await expect(connection.call('queue_send', SEND)).rejects.toThrow(
      stepsUp ? 'Server returned 403' : "the token's scopes do not allow this",
    )
    const refusal = client.refused.at(-1)
    expect(refusal?.status).toBe(403)
    expect(refusal?.challenge).toContain('error="insufficient_scope"')
    expect(refusal?.challenge).toContain('signalbox:write')
    expect(refusal?.challenge).toContain(metadata)
    expect(senders).toEqual([])
    expect(client.visits).toHaveLength(1)
    // A client with a refresh token refreshes first, which gives the same scopes, and shows the error.
    expect(as.refreshes()).toBe(stepsUp ? 1 : 0)
    if (!stepsUp) return
    client.dropRefreshToken()
    const next = await client.connect()
    await expect(next.call('queue_send', SEND)).rejects.toBeInstanceOf(unauthorized)
    expect(client.visits.at(-1)?.searchParams.get('scope')).toContain('signalbox:write')
    as.grants = ['signalbox:read', 'signalbox:write']
    await login(client)
    expect(await next.call('queue_send', SEND)).toBe(true)
    expect(senders).toEqual(['alice'])
  })

  const past = Math.floor(Date.now() / 1000) - 60
  describe.each([
    ['an expired token', (resource: string) => ({ aud: resource, exp: past }), 'it has expired (exp)'],
    [
      'a token for another server',
      () => ({ aud: 'https://other.example.com/mcp' }),
      'it is for another resource (aud)',
    ],
    ['a token without audience', () => ({}), 'it is for another resource (aud)'],
    [
      'a token of another issuer',
      (resource: string) => ({ aud: resource, iss: 'https://evil.example.com' }),
      'it is of another issuer (iss)',
    ],
  ])('%s', (_name, claims, reason) => {
    test('S10 - the client gets 401 invalid_token, refreshes silently, or asks its user again', async () => {
      const { as, url, resource, metadata } = await serveProtected()
      const { client, connection: first } = await loggedIn(url)
      // A connection may still be opening its stream, which would use the next token.
      await first.close()
      const bad = await as.sign({ ...claims(resource), scope: SCOPE })
      const challenge = `Bearer error="invalid_token", error_description="${reason}", ${metadata}, scope="${SCOPE}"`
      client.replaceToken(bad, true)
      const connection = await client.connect()
      expect(await connection.call('queue_send', SEND)).toBe(true)
      expect(client.refused.slice(1)).toEqual([{ status: 401, challenge }])
      expect([as.refreshes(), client.visits.length]).toEqual([1, 1])

      await connection.close()
      client.replaceToken(bad, false)
      await expect(client.connect()).rejects.toBeInstanceOf(unauthorized)
      expect(client.refused).toHaveLength(2)
      expect([as.refreshes(), client.visits.length]).toEqual([1, 2])
    })
  })
})
