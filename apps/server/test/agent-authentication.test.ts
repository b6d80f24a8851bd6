import type { JWTPayload } from 'jose'
import { expect, test } from 'vitest'

import { postJson, startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const one = issuer()

/** Calls with a token of this caller's. */
async function callerOf(base: string, clientId: string, claims: JWTPayload = {}) {
  const authorization = await one.bearer(clientId, claims)
  return {
    authorization,
    post: (path: string, body: unknown, headers: Record<string, string> = {}) =>
      postJson(`${base}${path}`, body, { authorization, ...headers }),
    get: (path: string) => fetch(`${base}${path}`, { headers: { authorization } }),
    tool: (name: string, args: object, headers: Record<string, string> = {}) =>
      rpc(base, 'tools/call', { name, arguments: args }, { authorization, ...headers }),
  }
}

function card(agent_id: string, url = 'http://127.0.0.1:9/'): object {
  return { agent_id, name: agent_id, url }
}

function message(method: string, id?: unknown): object {
  return { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params: {} }
}

test('S2, A5 - registered_by and X-Broker-Caller-ID are the ClientID of the token, on every route', async () => {
  const { http } = await serve(trusting(one))
  const agent = await startAgent((asked, response) => {
    if (asked.method !== 'message/stream') return withResult('yes')(asked, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: task.done\ndata: {"type":"done","payload":{}}\n\n')
  })
  const owner = await callerOf(http.url, 'owner', { sub: 'somebody else' })
  const mine = await owner.post('/agents/register', { ...card('agent-1', agent.url), registered_by: 'root' })
  expect(await mine.json()).toMatchObject({ registered_by: 'owner' })
  const alice = await callerOf(http.url, 'alice')
  // Nobody is believed who only says so.
  const forged = { 'x-broker-caller-id': 'root' }
  expect((await alice.post('/a2a/agent-1', message('message/send', 1), forged)).status).toBe(200)
  expect((await alice.post('/a2a/agent-1', message('a/notification'), forged)).status).toBe(202)
  await (await alice.post('/a2a/agent-1', message('message/stream', 1), forged)).text()
  await (await alice.get('/a2a/agent-1/stream?message=hi')).text()
  const ok = { result: { isError: false } }
  const to = { agent_id: 'agent-1' }
  expect(await alice.tool('agent_send', { ...to, message: 'hi' }, forged)).toMatchObject(ok)
  expect(await alice.tool('agent_send', { ...to, message: 'hi', blocking: false }, forged)).toMatchObject(ok)
  expect(await alice.tool('agent_query', { ...to, method: 'tasks/get' }, forged)).toMatchObject(ok)
  await expect.poll(() => agent.asked.length, { timeout: 20_000 }).toBe(7)
  for (const { method, headers } of agent.asked) {
    expect([method, headers['x-broker-caller-id'], headers.authorization]).toEqual([method, 'alice', undefined])
  }
  expect(agent.asked.map(({ method }) => method).toSorted()).toEqual([
    'a/notification',
    'message/send',
    'message/send',
    'message/send',
    'message/stream',
    'message/stream',
    'tasks/get',
  ])
})
