import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import type { ProbedRoute } from './support/routes.ts'
import { PROBED_ROUTES, REGISTER, WEBHOOK_ROUTES } from './support/routes.ts'
import { serve } from './support/server.ts'
import { governed, issuer, trusting } from './support/tokens.ts'

const one = issuer()

/** Callers by the heads of the table. The owner registered the agent, and has no role. */
async function callers(): Promise<readonly (readonly [string, string | undefined])[]> {
  return [
    ['no token', undefined],
    ['bad token', await issuer().bearer('mallory', { roles: ['Admin'] })],
    ['ReadOnly', await one.bearer('reader', { roles: ['ReadOnly'] })],
    ['ReadWrite', await one.bearer('writer', { roles: ['ReadWrite'] })],
    ['Admin', await one.bearer('admin', { roles: ['Admin'] })],
    ['owner', await one.bearer('owner')],
  ]
}

/** What a caller gets: `yes` when the route was reached, otherwise the code of the refusal. */
async function outcome({ http, api }: RunningServer, route: ProbedRoute, authorization?: string): Promise<string> {
  const { listener, method, path, headers, body } = route
  const leave = new AbortController()
  const response = await fetch(`${(listener === 'shared' ? http : api).url}${path}`, {
    method,
    signal: leave.signal,
    headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
    ...(body === undefined ? {} : { body }),
  })
  if (response.headers.get('content-type') === 'text/event-stream') {
    leave.abort()
    return 'yes'
  }
  const text = await response.text()
  const refused = /"code":(-3201[01])/.exec(text)?.[1]
  if (refused !== undefined) return refused
  const unknown = response.status === 404 && text.includes('page not found')
  return unknown || [401, 403, 405].includes(response.status) ? String(response.status) : 'yes'
}

/** The rows of the tables in docs/reference/http.md, below one head. */
function documented(): readonly (readonly string[])[] {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/reference/http.md'), 'utf8')
  const [, table = ''] = /<!-- access -->\n([^]*?)<!-- \/access -->/.exec(page) ?? []
  const rows = table
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[ -]+\|/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
  return rows.filter(([listener], i) => i === 0 || listener !== 'listener')
}

test('S3, S5 - every route admits exactly the callers that docs/reference/http.md lists', async () => {
  const webhooks = { enable: true, keyFile: join(testFolder(), 'webhooks.key') }
  const server = await serve({ ...trusting(one), webhooks })
  const columns = await callers()
  const owner = columns.at(-1)?.[1]
  const rows: string[][] = [['listener', 'route', ...columns.map(([name]) => name)]]
  const routes = [...PROBED_ROUTES, ...WEBHOOK_ROUTES]
  const shared = routes.filter(({ listener }) => listener === 'shared')
  for (const route of [...shared, ...routes.filter(({ listener }) => listener === 'management')]) {
    const row = [route.listener, route.name]
    if (route.needs === undefined) {
      row.push(...(await Promise.all(columns.map(([, authorization]) => outcome(server, route, authorization)))))
    } else {
      // One after the other: what one of them removes must be there again for the next.
      for (const [, authorization] of columns) {
        await outcome(server, REGISTER, owner)
        row.push(await outcome(server, route, authorization))
      }
    }
    rows.push(row)
  }
  expect(rows).toEqual(documented())
})

function card(agent_id: string): object {
  return { agent_id, name: agent_id, url: 'http://127.0.0.1:9/' }
}

test('S4 - the policy on agents applies to their routes, the gateway and the tools', async () => {
  const server = await serve({
    ...trusting(one),
    ...governed(
      { clients: 'owner', patterns: 'agents' },
      { clients: 'caller', patterns: 'agents', actions: ['list', 'call'], channels: 'open-*' },
    ),
  })
  const { url } = server.http
  const as = async (clientId: string, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: await one.bearer(clientId), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
  const tool = async (name: string, args: object) => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
    const { body } = await as('caller', 'POST', '/mcp', call)
    return (body as { result: { content: { text: string }[] } }).result.content[0]?.text
  }
  for (const id of ['open-one', 'closed-one']) {
    expect((await as('owner', 'POST', '/agents/register', card(id))).status).toBe(200)
    expect(await as('caller', 'POST', '/agents/register', card(id))).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: `the policy does not let "caller" register on agents "${id}"` },
    })
    for (const [method, path] of [
      ['POST', '/agents/heartbeat'],
      ['POST', '/agents/deregister'],
      ['DELETE', `/agents/${id}`],
    ] as const) {
      expect((await as('caller', method, path, { agent_id: id })).status, path).toBe(403)
    }
  }
  const send = { jsonrpc: '2.0', id: 7, method: 'message/send', params: {} }
  const forbidden = { jsonrpc: '2.0', id: 7, error: { code: -32011, message: 'forbidden' } }
  expect(await as('caller', 'POST', '/a2a/closed-one', send)).toEqual({ status: 200, body: forbidden })
  expect(await as('caller', 'POST', '/a2a/no-such-agent', send)).toEqual({ status: 200, body: forbidden })
  expect(await as('caller', 'GET', '/a2a/closed-one/stream')).toMatchObject({
    status: 200,
    body: { error: { code: -32011 } },
  })
  expect(await as('caller', 'POST', '/a2a/open-one', send)).toMatchObject({ body: { error: { code: -32003 } } })
  expect(await as('caller', 'GET', '/agents')).toMatchObject({ status: 200, body: [{ agent_id: 'open-one' }] })
  expect(await as('caller', 'GET', '/agents?limit=1')).toMatchObject({ body: [{ agent_id: 'open-one' }] })
  expect((await as('caller', 'GET', '/agents/closed-one')).status).toBe(403)
  expect((await as('caller', 'GET', '/agents/open-one')).status).toBe(200)
  expect(JSON.parse((await tool('agent_list', {})) ?? '')).toMatchObject([{ agent_id: 'open-one' }])
  expect(await tool('agent_info', { agent_id: 'closed-one' })).toMatch(/^FORBIDDEN: /)
  expect(await tool('agent_send', { agent_id: 'closed-one', message: 'x' })).toMatch(/^FORBIDDEN: /)
  expect(await tool('agent_query', { agent_id: 'closed-one', method: 'tasks/get' })).toMatch(/^FORBIDDEN: /)
  expect(await as('owner', 'DELETE', '/agents/closed-one')).toEqual({ status: 200, body: { ok: true } })
})
