import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { Message } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { ClientFactory as ClientFactory03 } from 'a2a-js-sdk-v03/client'
import { testFolder } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { callAgent, postJson, register } from './support/agent.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'
import type { SdkAgent } from './support/sdk-agent.ts'
import { openSdkAgent } from './support/sdk-agent.ts'
import { serve } from './support/server.ts'

const SECRET = 'agent-secret-7b1d'
const MESSAGE = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }

function withKey(folder = testFolder()): PartialConfig {
  return { webhooks: { keyFile: join(folder, 'seal.key') } }
}

/** An official agent that lets only requests with this header pass. */
function guarded(header = 'authorization', value = `Bearer ${SECRET}`): Promise<SdkAgent> {
  return openSdkAgent({
    guard(request, response) {
      if (request.headers[header] === value) return false
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="the agent"' }).end('no')
      return true
    },
    card: { securitySchemes: { token: { scheme: { $case: 'httpAuthSecurityScheme', value: bearerScheme } } } },
  })
}

const bearerScheme = { description: 'the token of the agent', scheme: 'bearer', bearerFormat: '' }

/** Calls an agent with the official client for A2A 1.0; resolves with the text of its artifact. */
async function shout(base: string, agentId: string): Promise<unknown> {
  const client = await new ClientFactory().createFromUrl(`${base}/a2a/${agentId}/`)
  const answer = await client.sendMessage({
    tenant: '',
    message: Message.fromJSON(MESSAGE),
    configuration: undefined,
    metadata: undefined,
  })
  return JSON.stringify(answer).match(/HELLO/)?.[0]
}

async function shout03(base: string, agentId: string): Promise<unknown> {
  const client = await new ClientFactory03().createFromUrl(`${base}/a2a/${agentId}/`)
  const answer = await client.sendMessage({
    message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hello' }] },
  })
  return JSON.stringify(answer).match(/HELLO/)?.[0]
}

test('A41 - agent credentials - a registered bearer token reaches the agent, and no answer or log shows it', async () => {
  const agent = await guarded()
  const path = testFolder()
  const { http, api } = await serve({ ...withKey(), store: { path } })
  const card = { agent_id: 'guarded', name: 'Guarded', url: agent.url }
  await register(http.url, card)
  await expect(shout(http.url, 'guarded')).rejects.toThrow('401')

  const answer = await register(http.url, { ...card, a2a: { credentials: { bearer: SECRET } } })
  expect(answer['a2a']).toEqual({ credentials: 'bearer' })
  expect(await shout(http.url, 'guarded')).toBe('HELLO')
  expect(await shout03(http.url, 'guarded')).toBe('HELLO')
  expect(agent.calls().map(({ headers }) => headers.authorization)).toEqual([
    undefined,
    `Bearer ${SECRET}`,
    `Bearer ${SECRET}`,
  ])

  const pages = [
    `${http.url}/agents`,
    `${http.url}/agents/guarded`,
    `${http.url}/a2a/guarded/.well-known/agent-card.json`,
    `${api.url}/api/agents`,
    `${api.url}/api/agents/guarded`,
    `${api.url}/api/audit`,
  ]
  for (const page of pages) {
    const shown = await (await fetch(page)).text()
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain('sealed')
  }
  for (const file of readdirSync(path)) expect(readFileSync(join(path, file)).includes(SECRET)).toBe(false)

  // An owner that changes the card which it has read keeps the credentials.
  await register(http.url, { ...answer, name: 'Renamed' })
  expect(await shout(http.url, 'guarded')).toBe('HELLO')
  await register(http.url, card)
  await expect(shout(http.url, 'guarded')).rejects.toThrow('401')
})

test('agent credentials - an API key replaces the header of the same name that a caller sends', async () => {
  const agent = await guarded('x-api-key', SECRET)
  const { http } = await serve(withKey())
  const credentials = { api_key: { header: 'X-API-Key', value: SECRET } }
  await register(http.url, { agent_id: 'keyed', name: 'Keyed', url: agent.url, a2a: { credentials } })
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: MESSAGE } }
  const answer = await postJson(`${http.url}/a2a/keyed`, call, { 'x-api-key': 'of the caller' })
  expect(await answer.text()).toContain('HELLO')
  expect(agent.calls().map(({ headers }) => headers['x-api-key'])).toEqual([SECRET])
})

/** A token endpoint of OAuth; resolves with its URL. */
async function startTokens(answer: (form: string, request: IncomingMessage, response: ServerResponse) => void) {
  const server = await testServer((request, response) => {
    void text(request).then((form) => answer(form, request, response))
  })
  return `${server.url}/token`
}

test('agent credentials - OAuth client credentials get one token for many calls, and another when it is refused', async () => {
  let current = 'token-1'
  const forms: string[] = []
  const tokenUrl = await startTokens((form, { headers }, response) => {
    forms.push(`${headers.authorization} ${form}`)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ access_token: current, token_type: 'Bearer', expires_in: 3600 }))
  })
  const agent = await openSdkAgent({
    guard(request, response) {
      if (request.headers.authorization === `Bearer ${current}`) return false
      response.writeHead(401).end()
      return true
    },
  })
  const { http } = await serve(withKey())
  const oauth = { token_url: tokenUrl, client_id: 'broker', client_secret: 's:1', scope: 'a2a call' }
  await register(http.url, { agent_id: 'oauth', name: 'OAuth', url: agent.url, a2a: { credentials: { oauth } } })
  await Promise.all([shout(http.url, 'oauth'), shout(http.url, 'oauth'), shout(http.url, 'oauth')])
  const basic = Buffer.from('broker:s%3A1').toString('base64')
  expect(forms).toEqual([`Basic ${basic} grant_type=client_credentials&scope=a2a+call`])

  current = 'token-2'
  await expect(shout(http.url, 'oauth')).rejects.toThrow('401')
  expect(await shout(http.url, 'oauth')).toBe('HELLO')
  expect(forms).toHaveLength(2)
})

test('agent credentials - a token endpoint that fails makes the agent unreachable, and callers do not see why', async () => {
  const tokenUrl = await startTokens((_form, _request, response) => response.writeHead(400).end('secret reason'))
  const agent = await openSdkAgent()
  const { http } = await serve(withKey())
  const oauth = { token_url: tokenUrl, client_id: 'broker', client_secret: 's' }
  await register(http.url, { agent_id: 'oauth', name: 'OAuth', url: agent.url, a2a: { credentials: { oauth } } })
  expect(await callAgent(http.url, 'oauth', 'message/send')).toMatchObject({
    error: { code: -32003, message: 'agent unreachable: there are no credentials for it now' },
  })
  expect(agent.calls()).toEqual([])
})

test('agent credentials - a token endpoint at a refused address is refused at the registration', async () => {
  const { http } = await serve({ ...withKey(), connectors: { a2a: { agentUrlDeny: ['10.0.0.0/8'] } } })
  const oauth = { token_url: 'http://10.1.2.3/token', client_id: 'broker', client_secret: SECRET }
  const card = { agent_id: 'oauth', name: 'OAuth', url: 'http://127.0.0.1:1/', a2a: { credentials: { oauth } } }
  const answer = await postJson(`${http.url}/agents/register`, card)
  expect(answer.status).toBe(400)
  const shown = await answer.text()
  expect(shown).toContain('a2a.credentials.oauth.token_url')
  expect(shown).not.toContain(SECRET)
})

test('A41 - agent credentials - X-Agent-Authorization becomes Authorization at an agent that asks for it, and at no other', async () => {
  const agent = await guarded()
  const { http } = await serve()
  const card = {
    name: 'One',
    url: agent.url,
    securitySchemes: { token: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
  }
  await register(http.url, { ...card, agent_id: 'asks', a2a: { credentials: 'caller' } })
  await register(http.url, { ...card, agent_id: 'asks-not' })
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: MESSAGE } }
  const headers = { 'x-agent-authorization': `Bearer ${SECRET}`, authorization: 'Bearer of-the-gateway' }
  expect(await (await postJson(`${http.url}/a2a/asks`, call, headers)).text()).toContain('HELLO')
  expect((await postJson(`${http.url}/a2a/asks-not`, call, headers)).status).toBe(401)
  expect(
    agent.calls().map(({ headers: { authorization, 'x-agent-authorization': own } }) => [authorization, own]),
  ).toEqual([
    [`Bearer ${SECRET}`, undefined],
    [undefined, undefined],
  ])

  const shownAt = async (id: string, version: string) =>
    (await fetch(`${http.url}/a2a/${id}/.well-known/agent-card.json`, { headers: { 'a2a-version': version } })).json()
  expect(await shownAt('asks', '1.0')).toMatchObject({
    securitySchemes: {
      token: { httpAuthSecurityScheme: { scheme: 'bearer' } },
      agentAuthorization: { apiKeySecurityScheme: { location: 'header', name: 'X-Agent-Authorization' } },
    },
    securityRequirements: [{ schemes: { agentAuthorization: { list: ['a2a'] } } }],
  })
  expect(await shownAt('asks', '0.3')).toMatchObject({
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer' },
      agentAuthorization: { type: 'apiKey', in: 'header', name: 'X-Agent-Authorization' },
    },
    security: [{ agentAuthorization: [] }],
  })
  expect(await shownAt('asks-not', '1.0')).not.toHaveProperty('securitySchemes')
})

test('A41 - agent credentials - registered credentials win over those of a caller', async () => {
  const agent = await guarded()
  const { http } = await serve(withKey())
  await register(http.url, {
    agent_id: 'own',
    name: 'Own',
    url: agent.url,
    a2a: { credentials: { bearer: SECRET } },
  })
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: MESSAGE } }
  const headers = { 'x-agent-authorization': 'Bearer of-the-caller' }
  expect(await (await postJson(`${http.url}/a2a/own`, call, headers)).text()).toContain('HELLO')
})

test('agent credentials - AGENT_CREDENTIALS_FILE is read again when it changes, and serves its origin alone', async () => {
  const agent = await guarded()
  const stranger = await guarded()
  const file = join(testFolder(), 'credentials.yaml')
  const origin = new URL(agent.url).origin
  writeFileSync(file, `guarded: { origin: "${origin}", bearer: old }\n`)
  const { http, api } = await serve({ agentCredentialsFile: file })
  await register(http.url, { agent_id: 'guarded', name: 'Guarded', url: agent.url })
  await expect(shout(http.url, 'guarded')).rejects.toThrow('401')
  writeFileSync(file, JSON.stringify({ guarded: { origin, bearer: SECRET } }))
  await until(async () => (await (await fetch(`${api.url}/api/audit`)).text()).includes('reload_agent_credentials'))
  expect(await shout(http.url, 'guarded')).toBe('HELLO')
  expect(agent.calls().at(-1)?.headers.authorization).toBe(`Bearer ${SECRET}`)

  // Another server under the same id gets nothing.
  await register(http.url, { agent_id: 'guarded', name: 'Guarded', url: stranger.url })
  await expect(shout(http.url, 'guarded')).rejects.toThrow('401')
  expect(stranger.calls().map(({ headers }) => headers.authorization)).toEqual([undefined])
})

test('agent credentials - a credentials file that is not valid stops the start, and its problem names no secret', async () => {
  const file = join(testFolder(), 'credentials.json')
  for (const content of [
    `{"a1": {"origin": "http://x/path", "bearer": "${SECRET}"}}`,
    `{"a1": {"bearer": "${SECRET}"`,
  ]) {
    writeFileSync(file, content)
    const failure = await serve({ agentCredentialsFile: file }).catch((error: unknown) => error)
    expect(String(failure)).toContain('agentCredentialsFile')
    expect(String(failure)).not.toContain(SECRET)
  }
})

test('agent credentials - credentials that the server cannot keep or use are refused without being repeated', async () => {
  const { http } = await serve()
  const card = { agent_id: 'a1', name: 'A', url: 'http://127.0.0.1:1/' }
  for (const [credentials, says] of [
    [{ bearer: SECRET }, 'set WEBHOOKS_KEY_FILE'],
    ['bearer', 'the credentials themselves'],
    [SECRET, '"caller"'],
    [{ bearer: `${SECRET}\n` }, '{"bearer": token}'],
    [{ api_key: { header: 'Host', value: SECRET } }, '{"api_key"'],
  ] as const) {
    const answer = await postJson(`${http.url}/agents/register`, { ...card, a2a: { credentials } })
    const shown = await answer.text()
    expect(answer.status).toBe(400)
    expect(shown).toContain(JSON.stringify(says).slice(1, -1))
    expect(shown).not.toContain(SECRET)
  }
})

test.each([
  [
    401,
    { 'www-authenticate': 'Bearer realm="the agent", error="invalid_token"' },
    401,
    -32010,
    'AGENT_UNAUTHENTICATED',
  ],
  [403, {}, 403, -32011, 'AGENT_FORBIDDEN'],
  [413, {}, 413, -32600, 'REQUEST_TOO_LARGE'],
  [429, { 'retry-after': '7' }, 200, -32603, 'AGENT_BUSY'],
] as const)(
  'agent credentials - HTTP %s of an agent is an error of its kind in native A2A, and as specified in the dialect',
  async (status, headers, answered, code, reason) => {
    const agent = await openSdkAgent({
      guard(_request, response) {
        response.writeHead(status, headers).end('refused')
        return true
      },
    })
    const { http } = await serve()
    await register(http.url, { agent_id: 'refuses', name: 'Refuses', url: agent.url })
    const call = { jsonrpc: '2.0', id: 7, method: 'SendMessage', params: { message: MESSAGE } }
    const answer = await postJson(`${http.url}/a2a/refuses`, call)
    expect(answer.status).toBe(answered)
    expect(await answer.json()).toMatchObject({
      id: 7,
      error: { code, data: expect.arrayContaining([expect.objectContaining({ reason })]) },
    })
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? headers['www-authenticate'] : null)
    expect(answer.headers.get('retry-after')).toBe(status === 429 ? '7' : null)

    const rest = await postJson(`${http.url}/a2a/refuses/message:send`, { message: MESSAGE })
    expect(rest.status).toBe(status)
    expect(await callAgent(http.url, 'refuses', 'message/send')).toMatchObject({
      error: status === 401 || status === 403 ? { code: -32003, data: { status } } : { code: -32004 },
    })
  },
)

test(
  'agent credentials - every node with the key uses them, and a node with another key sends nothing',
  PATIENT,
  async () => {
    const agent = await guarded()
    const nats = await startNats()
    const folder = testFolder()
    const first = await serveNode(nats, withKey(folder))
    await register(first.http.url, {
      agent_id: 'guarded',
      name: 'Guarded',
      url: agent.url,
      a2a: { credentials: { bearer: SECRET } },
    })
    const second = await serveNode(nats, withKey(folder))
    await first.close()
    expect(await shout(second.http.url, 'guarded')).toBe('HELLO')
    const other = await serveNode(nats, withKey())
    await second.close()
    expect(await callAgent(other.http.url, 'guarded', 'message/send')).toMatchObject({ error: { code: -32003 } })
    expect(agent.calls()).toHaveLength(1)
  },
)
