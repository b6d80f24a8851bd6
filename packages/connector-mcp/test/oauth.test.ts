import type { PolicyAction } from '@signalbox/broker-core'
import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { describe, expect, test } from 'vitest'

import type { McpConnectorOptions } from '../src/index.ts'
import { mcpConnector } from '../src/index.ts'
import { HOST_KINDS } from './mcp-host.ts'
import { resultText, rpc, startHost, waitingReceive } from './mcp-host.ts'

const RESOURCE = 'https://broker.example.com/mcp'
const METADATA = '/.well-known/oauth-protected-resource'

/** An authenticator whose tokens are lists of actions. */
const actions: Authenticator = {
  authenticate({ headers }) {
    const [, list] = /^Bearer (.*)$/.exec(headers.authorization ?? '') ?? []
    if (list === undefined || list === 'bad') throw new AuthenticationError('no')
    return { clientId: 'me', actions: new Set(list.split(',') as PolicyAction[]) }
  },
}

const OAUTH: McpConnectorOptions = {
  authenticator: actions,
  oauth: { resource: RESOURCE, authorizationServers: ['https://id.example.com'] },
}

const SENDS = { Authorization: 'Bearer send,receive' }

describe.each(HOST_KINDS)('on %s', (kind) => {
  test('S10 - the connector serves its metadata', async () => {
    const host = await startHost(OAUTH, kind)
    for (const path of [METADATA, `${METADATA}/mcp`]) {
      const response = await fetch(new URL(path, host.url))
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(await response.json()).toEqual({
        resource: RESOURCE,
        authorization_servers: ['https://id.example.com'],
        // Without an agent directory there are no agent tools.
        scopes_supported: ['signalbox:read', 'signalbox:write'],
        bearer_methods_supported: ['header'],
      })
    }
    const preflight = await fetch(new URL(METADATA, host.url), { method: 'OPTIONS' })
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'GET, HEAD'])
  })

  test('S10, S11 - its answers without a token, with a bad one and with too few scopes', async () => {
    const host = await startHost(OAUTH, kind)
    const ends = `resource_metadata="https://broker.example.com${METADATA}/mcp", scope=`
    const all = '"signalbox:read signalbox:write"'
    const described = 'error_description="the scopes of the token'
    const args = { channel: 'q', max_messages: 1 }
    for (const [headers, status, challenge] of [
      [{}, 401, `Bearer ${ends}${all}`],
      [{ Authorization: 'Bearer bad' }, 401, `Bearer error="invalid_token", ${ends}${all}`],
      [SENDS, 403, `Bearer error="insufficient_scope", ${described} do not allow this call", ${ends}"signalbox:read"`],
      [
        { Authorization: 'Bearer manage' },
        403,
        `Bearer error="insufficient_scope", ${described} allow nothing here", ${ends}${all}`,
      ],
    ] as const) {
      const answer = await host.call('queue_peek', args, headers)
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([status, challenge])
      expect(rpc(answer)).toMatchObject({ id: 1, error: { code: -32010 } })
    }
    expect((await host.call('queue_peek', args, { Authorization: 'Bearer peek' })).status).toBe(200)
    const outcomes = ['unauthenticated', 'unauthenticated', 'error', 'error', 'success']
    expect(host.requests.map(({ outcome }) => outcome)).toEqual(outcomes)
    expect(host.failures).toEqual([])
  })
})

test('S11 - a call that waits is not refused later', async () => {
  const host = await startHost(OAUTH)
  const { answer } = await waitingReceive(host, { headers: SENDS })
  await host.call('queue_send', { channel: 'q', body: 'x' }, SENDS)
  expect(resultText(await answer)).toContain('"body":"x"')
})

test('S11 - without the option, credentials that do not suffice are a result', async () => {
  const host = await startHost({ authenticator: actions })
  const answer = await host.call('queue_peek', { channel: 'q', max_messages: 1 }, SENDS)
  expect(answer.status).toBe(200)
  expect(resultText(answer)).toBe(
    'FORBIDDEN: The credentials of "me" do not allow peek; use a token with the scope for it. Ask the user to grant it.',
  )
})

test('S10 - a resource that is no URL is refused', async () => {
  const { broker } = await startHost()
  const oauth = { resource: 'mcp', authorizationServers: [] }
  expect(() => mcpConnector(broker, { oauth })).toThrow('oauth.resource: "mcp"; allowed is an absolute URL')
})
