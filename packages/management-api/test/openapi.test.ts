import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import { expect, test } from 'vitest'

import { MANAGEMENT_ROUTES } from '../src/index.ts'
import { oneTask } from './inboxes.ts'
import type { Answer } from './management-server.ts'
import { manage } from './management-server.ts'

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly servers: readonly { url: string }[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: object }[]
  readonly requestBody?: { content: Record<string, { schema?: object }> }
  readonly responses: Record<string, { description: string; content?: Record<string, { schema?: object }> }>
}

interface Document {
  readonly openapi: string
  readonly info: { title: string; version: string }
  readonly tags: readonly { name: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { securitySchemes: Record<string, object> }
}

async function documentOf(options = {}): Promise<Document> {
  const { url } = await manage(options)
  const response = await fetch(`${url}/openapi.json`)
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  return (await response.json()) as Document
}

test('MGMT-14 - the document is valid OpenAPI 3.1', async () => {
  const document = await documentOf()
  expect(document.openapi).toMatch(/^3\.1\.\d+$/)
  expect(document.info).toMatchObject({ title: 'Signalbox', version: '1.2.3' })
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
  for (const { path, method, operation } of operations) {
    expect(path).toMatch(/^\/[\w/{}.-]+$/)
    expect(['get', 'post', 'delete']).toContain(method)
    expect(operation.summary).not.toBe('')
    expect(operation.servers[0]?.url).toMatch(/^http:\/\/127\.0\.0\.1:(9090|8080)$/)
    for (const tag of operation.tags) expect(document.tags).toContainEqual({ name: tag })
    const names = operation.parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
    expect(new Set(names).size).toBe(names.length)
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `path ${name}`)
    expect(names.filter((name) => name.startsWith('path '))).toEqual(inPath)
    expect(Object.keys(operation.responses).length).toBeGreaterThan(0)
    for (const [status, response] of Object.entries(operation.responses)) {
      expect(status).toMatch(/^[1-5](\d\d|XX)$/)
      expect(typeof response.description).toBe('string')
    }
  }
  // What only TypeBox understands would make other tools stumble, and a null is what could not be printed.
  expect(JSON.stringify(document)).not.toMatch(/"~|\$ref|:null/)
})

test('MGMT-14 - the document has exactly the routes of the listener', async () => {
  const document = await documentOf()
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const { routes } = await manage()
  const probes = ['/ping', '/health', '/ready'].map((path) => `GET ${path}`)
  expect(documented.toSorted()).toEqual([...routes, ...probes].toSorted())
})

test('MGMT-14 - includes the routes of other listeners unchanged', async () => {
  const document = await documentOf({
    document: {
      version: '1.2.3',
      servers: { shared: 'http://127.0.0.1:9090' },
      routes: () => [
        {
          method: 'DELETE',
          path: '/agents/{agent_id}',
          listener: 'shared',
          tag: 'Registry',
          summary: 'Removes an agent.',
          parameters: { agent_id: Type.String({ description: 'Its id.' }) },
          query: Type.Object({ force: Type.Optional(Type.Boolean()), why: Type.String() }),
          headers: Type.Object({ 'If-Match': Type.Optional(Type.String()) }),
          responses: { 200: { description: 'Done.', schema: Type.Object({ ok: Type.Literal(true) }) } },
        },
      ],
    },
  })
  expect(document.paths['/agents/{agent_id}']?.['delete']).toMatchObject({
    operationId: 'delete_agents_agent_id',
    parameters: [
      { name: 'agent_id', in: 'path', required: true, description: 'Its id.', schema: { type: 'string' } },
      { name: 'force', in: 'query', required: false, schema: { type: 'boolean' } },
      { name: 'why', in: 'query', required: true },
      { name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } },
    ],
  })
})

const QUEUE = { type: 'queues', channel: 'q' }

function check(schema: TSchema | undefined, { status, ...envelope }: Answer): boolean {
  return schema !== undefined && status === 200 && Check(schema, envelope)
}

test('MGMT-14 - the answers of the routes match the document', async () => {
  const { get, act, broker, api } = await manage({
    agents: { list: () => [], deregister: async () => false, card: () => ({ agent_id: 'a' }) },
    services: { agentInboxes: oneTask() },
  })
  await broker.as({ clientId: 'a' }).eventsStore.publish('s', { body: new Uint8Array(1) })
  await act('send_queue_message', { channel: 'q', body: 'x' })
  await expect.poll(async () => (await get('/api/audit')).data.items.length).toBe(1)
  api.audit.authenticationFailed('x', 'mcp')
  const queries: Readonly<Record<string, string>> = {
    '/api/messages': '?type=events_store&channel=s',
    '/api/message': '?type=queues&channel=q&sequence=1',
    '/api/dead_letters': '?channel=q',
    '/api/trace': '?id=x',
    '/api/agent_card': '?agent_id=a',
    '/api/agent_tasks': '?agent_id=a',
    '/api/agent_task_events': '?agent_id=a&task_id=t',
    '/api/subscribers': '?type=events&channel=e',
    '/api/policy/test': '?client=a&action=send&pattern=queues&channel=q',
  }
  for (const { method, path, responses } of MANAGEMENT_ROUTES) {
    if (method !== 'GET' || !/^\/(api|v1)/.test(path) || 101 in responses) continue
    const answer = await get(path + (queries[path] ?? ''))
    expect([path, answer.error_string]).toEqual([path, ''])
    expect([path, check(responses['200']?.schema, answer)]).toEqual([path, true])
  }
  const service = broker.as({ clientId: 'service' })
  await service.commands.subscribe('c', {}, () => ({}))
  await service.queries.subscribe('c', {}, () => ({ body: new Uint8Array([0xff]) }))
  const args: Readonly<Record<string, object>> = {
    create_channel: { type: 'queues' },
    delete_channel: { type: 'queues' },
    peek_queue_messages: { max_messages: 1 },
    receive_queue_messages: { max_messages: 1 },
    deregister_agent: { agent_id: 'x', channel: undefined },
    purge_queue: {},
    pause_queue: { seconds: 5 },
    resume_queue: {},
    set_channel_settings: { type: 'queues', match: 'q', description: 'x', channel: undefined },
    remove_channel_settings: { type: 'queues', match: 'q', channel: undefined },
    redrive_dead_letters: {},
    cancel_task: { id: 'x', channel: undefined },
    cancel_agent_task: { agent_id: 'a', task_id: 't', channel: undefined },
    cancel_stream: { id: 'x', channel: undefined },
    call_tool: { name: 'x', channel: undefined },
    call_agent: { agent_id: 'x', message: 'x', channel: undefined },
    set_schedule: { id: 'x', channel: undefined, every_seconds: 60, target: QUEUE, message: { body: 'x' } },
    remove_schedule: { id: 'x', channel: undefined },
    pause_schedule: { id: 'x', channel: undefined },
    resume_schedule: { id: 'x', channel: undefined },
    trigger_schedule: { id: 'x', channel: undefined },
    start_redrive: {},
    cancel_redrive: { id: 'x', channel: undefined },
    redrive_edited_message: { id: 'x' },
    resend_message: { type: 'events_store', sequence: 1 },
  }
  for (const { method, path, responses } of MANAGEMENT_ROUTES) {
    if (method !== 'POST') continue
    const action = path.replace('/api/actions/', '')
    const channel = action.startsWith('send_') && action !== 'send_queue_message' ? 'c' : 'q'
    const answer = await act(action, { channel, ...(args[action] ?? { body: 'x' }) })
    expect([action, answer.error]).toEqual([
      action,
      /(?:purge|pause|resume)_queue|redrive|deregister|webhook|schedule|cancel|call_|settings/.test(action)
        ? answer.error
        : false,
    ])
    expect([action, check(responses['200']?.schema, answer)]).toEqual([action, true])
  }
})
