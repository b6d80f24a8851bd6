import { Compile } from 'typebox/schema'
import { expect, test } from 'vitest'

import type { ProbedRoute } from './support/routes.ts'
import { PROBED_ROUTES, REGISTER } from './support/routes.ts'
import { serve } from './support/server.ts'

interface Response_ {
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { responses: Readonly<Record<string, Response_>> }>>>>
}

/** Streams and sockets have no answer that ends, JSON-RPC has its own schemas, and the console is a page. */
const NO_ANSWER = /(?:subscribe\/|\/mcp|\/a2a\/|\/monitor|\/stats\/attach|\/console\/|\/unknown)/

const EVENT = '{"specversion":"1.0","id":"e1","source":"/probe","type":"probe","data":{"n":1}}'
const CLOUD_EVENT = { 'content-type': 'application/cloudevents+json' }

function post(path: string, body = EVENT, headers: Readonly<Record<string, string>> = CLOUD_EVENT): ProbedRoute {
  const name = `POST ${path.replace(/\?.*/, '')}`
  return { name, listener: 'shared', method: 'POST', path, headers, body }
}

/** Returns the problem of an answer; undefined if the document describes it. */
function problemOf(
  document: Document,
  { name, method }: ProbedRoute,
  status: number,
  body: unknown,
): string | undefined {
  const [, path = ''] = name.split(' ')
  const responses = document.paths[path]?.[method.toLowerCase()]?.responses ?? {}
  const response = responses[status] ?? responses[`${Math.floor(status / 100)}XX`]
  if (response === undefined) return `${name}: the status ${status} is not documented`
  const schema = response.content?.['application/json']?.schema
  if (schema === undefined) return undefined
  return Compile(schema).Check(body) ? undefined : `${name} ${status}: ${JSON.stringify(body)}`
}

test('MGMT-14 - answers of a real server match the OpenAPI document', async () => {
  const { http, api } = await serve()
  const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as Document
  const problems: string[] = []
  const seen = new Map<string, Set<number>>()
  const send = async (route: ProbedRoute): Promise<unknown> => {
    const { name, listener, method, path, headers = {}, body } = route
    const base = listener === 'shared' ? http.url : api.url
    const response = await fetch(base + path, { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    const value: unknown = isJson ? JSON.parse(text) : text
    seen.set(name, (seen.get(name) ?? new Set()).add(response.status))
    const problem = problemOf(document, route, response.status, value)
    if (problem !== undefined) problems.push(problem)
    return value
  }
  await send(post('/ce/queue/send?channel=probe'))
  await send(post('/ce/queue/send?channel=probe'))
  const leased = (await send(post('/ce/queue/receive?channel=probe&visibility_seconds=60'))) as {
    data: { messages: { receipt: string }[] }
  }
  const receipt = encodeURIComponent(leased.data.messages[0]?.receipt ?? '')
  await send(post(`/ce/queue/extend?receipt=${receipt}&visibility_seconds=60`))
  await send(post(`/ce/queue/nack?receipt=${receipt}`))
  await send(post(`/ce/queue/receive?channel=probe&is_peek=true`))
  await send(post('/ce/send/event-store?channel=log'))
  await send(post('/ce/send/event-store', '{}'))
  const replicated = { agent_id: 'many', name: 'Many', instance_id: 'a', url: 'http://127.0.0.1:9/' }
  const json = { 'content-type': 'application/json' }
  await send(post('/agents/register', JSON.stringify(replicated), json))
  await send(post('/agents/register', '{"agent_id":"puller","name":"Puller","a2a":{"pull":true}}', json))
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  await fetch(`${http.url}/a2a/puller`, { method: 'POST', headers: json, body: JSON.stringify(call) })
  const inbox = (name: string, body: object) =>
    send({
      ...post(`/agents/puller/inbox/${name}`, JSON.stringify(body), json),
      name: `POST /agents/{agent_id}/inbox/${name}`,
    })
  const { items } = (await inbox('lease', {})) as { items: { receipt: string }[] }
  await inbox('events', { receipt: items[0]?.receipt, offset: 0, events: [] })
  await inbox('nack', { receipt: items[0]?.receipt })
  const depth = { listener: 'shared', method: 'GET', path: '/agents/puller/inbox' } as const
  await send({ ...depth, name: 'GET /agents/{agent_id}/inbox' })
  for (const type of ['commands', 'queries']) {
    for (const reject of [true, false]) {
      const abort = new AbortController()
      const stream = await fetch(`${http.url}/ce/subscribe/${type}?channel=asked`, { signal: abort.signal })
      const asked = send(post(`/ce/send/${type === 'commands' ? 'command' : 'query'}?channel=asked&timeout=10`))
      let frames = ''
      for await (const chunk of stream.body ?? []) {
        frames += Buffer.from(chunk).toString()
        if (frames.includes('brokerrequestid')) break
      }
      const [, id = ''] = /"brokerrequestid":"([^"]+)"/.exec(frames) ?? []
      await send(post(`/ce/send/response?request_id=${id}&is_error=${reject}`))
      await asked
      abort.abort()
    }
  }
  for (const route of PROBED_ROUTES.filter(({ name, page }) => page !== true && !NO_ANSWER.test(name))) {
    if (route.needs !== undefined) await send(REGISTER)
    await send(route)
  }
  expect(problems).toEqual([])
  const onlyFailed = [...seen].filter(([, statuses]) => [...statuses].every((status) => status >= 400))
  expect(onlyFailed.map(([name]) => name)).toEqual([])
})
