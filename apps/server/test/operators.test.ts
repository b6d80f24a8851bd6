import { documentedA2aRoutes } from '@signalbox/connector-a2a'
import { documentedRegistryRoutes } from '@signalbox/registry'
import { Check } from 'typebox/value'
import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { register, startAgent, withResult } from './support/agent.ts'
import { callTool, rpc } from './support/mcp.ts'
import { PROBED_ROUTES } from './support/routes.ts'
import { serve } from './support/server.ts'

interface Answer {
  readonly error: boolean
  readonly error_string: string
  readonly data: unknown
}

async function get(api: string, path: string): Promise<Answer> {
  return (await fetch(api + path)).json() as Promise<Answer>
}

async function audited(api: string, query = ''): Promise<readonly Readonly<Record<string, string>>[]> {
  const { data } = await get(api, `/api/audit${query}`)
  return (data as { items: Record<string, string>[] }).items
}

async function act(api: string, action: string, args: object): Promise<Answer> {
  const response = await fetch(`${api}/api/actions/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(args),
  })
  return response.json() as Promise<Answer>
}

interface Schema {
  readonly properties: Record<string, Record<string, unknown>>
  readonly required?: readonly string[]
}

/** What a caller must know of arguments: names, types, ranges, defaults, what is required. */
function essence({ properties, required = [] }: Schema): object {
  const keywords = ['type', 'minimum', 'maximum', 'default', 'enum', 'additionalProperties']
  const names = Object.keys(properties).toSorted()
  return names.map((name) => [
    name,
    required.includes(name),
    keywords.map((keyword) => [keyword, properties[name]?.[keyword]]),
  ])
}

test('MGMT-9 - an action takes exactly the arguments of the tool that does the same', async () => {
  const { http, api } = await serve()
  const { result } = (await rpc(http.url, 'tools/list', {})) as {
    result: { tools: { name: string; inputSchema: Schema }[] }
  }
  const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
    paths: Record<string, { post: { requestBody: { content: { 'application/json': { schema: Schema } } } } }>
  }
  const same = {
    send_queue_message: 'queue_send',
    receive_queue_messages: 'queue_receive',
    peek_queue_messages: 'queue_peek',
    publish_event: 'events_publish',
    publish_event_store: 'events_store_publish',
    send_command: 'command_send',
    send_query: 'query_send',
  }
  for (const [action, tool] of Object.entries(same)) {
    const body = document.paths[`/api/actions/${action}`]?.post.requestBody.content['application/json'].schema
    const input = result.tools.find(({ name }) => name === tool)?.inputSchema
    expect([action, essence(body ?? { properties: {} })]).toEqual([action, essence(input ?? { properties: {} })])
  }
})

test('MGMT-14 - the document has the REST routes of both listeners', async () => {
  const { api } = await serve()
  const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as { paths: Record<string, object> }
  const rest = PROBED_ROUTES.filter(
    ({ name, page }) => page !== true && !/(?:\/mcp|\/unknown|\/a2a\/{agent_id}(?:\/stream|\/v0\.3)?)$/.test(name),
  )
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(documented.toSorted()).toEqual([...new Set(rest.map(({ name }) => name))].toSorted())
  const off = { enable: false }
  const without = await serve({ connectors: { ce: off, a2a: off, mcp: off } })
  const { paths: fewer } = (await (await fetch(`${without.api.url}/openapi.json`)).json()) as {
    paths: Record<string, object>
  }
  expect(Object.keys(fewer).filter((path) => /^\/(?:ce|agents|a2a|mcp|\.well-known)/.test(path))).toEqual([])
})

test("MGMT-14 - the answers of the agents' routes match the document", async () => {
  const { http } = await serve()
  const card = { agent_id: 'probe', name: 'Probe', url: 'http://127.0.0.1:9/', skills: [{ id: 'a', name: 'A' }] }
  const calls: readonly (readonly [string, number, unknown?])[] = [
    ['POST /agents/register', 200, card],
    ['POST /agents/register', 400, {}],
    ['POST /agents/heartbeat', 200, { agent_id: 'probe' }],
    ['POST /agents/heartbeat', 400, { agent_id: 'nobody' }],
    ['GET /agents', 200],
    ['GET /agents/{agent_id}', 200],
    ['GET /.well-known/agent-card.json', 200],
    ['GET /a2a/{agent_id}/.well-known/agent-card.json', 200],
    ['GET /.well-known/jwks.json', 200],
    ['POST /agents/deregister', 200, { agent_id: 'probe' }],
    ['DELETE /agents/{agent_id}', 404],
    ['GET /agents/{agent_id}', 404],
    ['GET /a2a/{agent_id}/.well-known/agent-card.json', 404],
  ]
  const routes = [...(await documentedRegistryRoutes()), ...(await documentedA2aRoutes({}))]
  for (const [name, status, body] of calls) {
    const [method = '', path = ''] = name.split(' ')
    const response = await fetch(http.url + path.replace('{agent_id}', 'probe'), {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const schema = routes.find((route) => `${route.method} ${route.path}` === name)?.responses[status]?.schema
    const answer: unknown = await response.json()
    expect([name, response.status]).toEqual([name, status])
    expect([name, answer, schema !== undefined && Check(schema, answer)]).toEqual([name, answer, true])
  }
})

test('MGMT-12 - the configuration in effect, and the open connections of other listeners', async () => {
  const { http, api } = await serve({ queue: { maxMessages: 7 } })
  const ended = new AbortController()
  await fetch(`${http.url}/mcp`, { headers: { accept: 'text/event-stream' }, signal: ended.signal })
  expect(await get(api.url, '/api/config')).toMatchObject({
    data: { queue: { maxMessages: 7 }, http: { host: '127.0.0.1' } },
  })
  expect(await get(api.url, '/api/snapshot')).toMatchObject({
    data: {
      streams: { mcp: 1, cloudevents: 0 },
      nodes: [{ engine: 'embedded', ready: true, healthy: true }],
    },
  })
  ended.abort()
})

test('AUDIT-1, AUDIT-5 - the audit log survives a restart', async () => {
  const store = { path: testFolder() }
  const first = await serve({ store })
  await act(first.api.url, 'create_channel', { channel: 'orders', type: 'queues' })
  await first.close()
  const { api } = await serve({ store })
  expect(await get(api.url, '/api/audit')).toMatchObject({
    data: { items: [{ action: 'create_channel', channel: 'orders' }] },
  })
})

test('MGMT-10, AUDIT-2 - agents are listed and removed by operators, and changes of the registry are audited once', async () => {
  const { http, api } = await serve()
  const agent = await startAgent(withResult('yes'))
  for (const agent_id of ['one', 'two']) await register(http.url, { agent_id, name: 'Agent', url: agent.url })
  await fetch(`${http.url}/agents/two`, { method: 'DELETE' })
  expect(await get(api.url, '/api/agents')).toMatchObject({
    data: {
      items: [{ agent_id: 'one', registered_by: 'anonymous', is_alive: true, in_flight: 0, version: '' }],
      total: 1,
    },
  })
  expect(await act(api.url, 'deregister_agent', { agent_id: 'one' })).toMatchObject({
    error: false,
    data: { agent_id: 'one' },
  })
  expect(await act(api.url, 'deregister_agent', { agent_id: 'one' })).toMatchObject({
    data: { code: 'AGENT_NOT_FOUND' },
  })
  expect(await get(api.url, '/api/agents')).toMatchObject({ data: { total: 0 } })
  const entries = async () =>
    (await audited(api.url)).map(
      ({ action, agent, address = '', outcome }) => `${action} ${agent} ${address} ${outcome}`,
    )
  await expect
    .poll(entries)
    .toEqual([
      'deregister_agent one 127.0.0.1 failure',
      'deregister_agent one 127.0.0.1 success',
      'deregister_agent two 127.0.0.1 success',
      'register_agent two 127.0.0.1 success',
      'register_agent one 127.0.0.1 success',
    ])
})

test('AUDIT-3 - AUDIT_MESSAGES logs every message, and the tools do not show the log', async () => {
  const { http, api } = await serve({ audit: { messages: true } })
  await callTool(http.url, 'queue_send', { channel: 'orders', body: 'secret' })
  await expect.poll(() => audited(api.url, '?action=send')).toHaveLength(1)
  expect((await callTool(http.url, 'channel_list', {})).text).not.toContain('_AGENTS_')
})
