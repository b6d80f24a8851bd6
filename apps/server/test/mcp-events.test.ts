import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'

import type {
  Experimental_MCPEvent as MCPEvent,
  Experimental_MCPEventStore as MCPEventStore,
  Experimental_MCPEventSubscription as MCPEventSubscription,
} from '@ai-sdk/mcp'
import { createMCPClient, experimental_createMCPEventWebhook } from '@ai-sdk/mcp'
import { encodeText } from '@signalbox/broker-core'
import { testFolder } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { issuer, trusting } from './support/tokens.ts'
import { serve } from './support/server.ts'
import type { RunningServer } from '../src/server.ts'

const one = issuer()

function withWebhooks(mcp: object = {}, keyFile = join(testFolder(), 'webhooks.key')) {
  return {
    ...trusting(one),
    connectors: { mcp: { events: true, ...mcp } },
    webhooks: { enable: true, keyFile, allow: ['127.0.0.1'] },
  }
}

/** The store of subscriptions that the client needs. */
function memoryStore(): MCPEventStore & { readonly all: Map<string, MCPEventSubscription> } {
  const all = new Map<string, MCPEventSubscription>()
  return {
    all,
    get: async (key) => all.get(key),
    getById: async (id) => [...all.values()].find((each) => each.id === id),
    set: async (subscription) => void all.set(subscription.key, subscription),
    async update(key, patch) {
      const known = all.get(key)
      if (known !== undefined) all.set(key, { ...known, ...patch })
    },
    delete: async (key) => void all.delete(key),
  }
}

/** The receiver of the AI SDK on loopback, with the events that it accepted. */
async function openSdkReceiver(store: MCPEventStore) {
  const events: MCPEvent[] = []
  const errors: unknown[] = []
  const handle = experimental_createMCPEventWebhook({
    store,
    onEvent: async ({ event }) => void events.push(event),
    onError: (error) => void errors.push(error),
  })
  const server = await testServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = await buffer(request)
      const headers = new Headers()
      for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value))
      const url = `http://127.0.0.1${request.url ?? ''}`
      const answered = await handle(new Request(url, { method: request.method ?? 'GET', headers, body }))
      response.writeHead(answered.status, Object.fromEntries(answered.headers))
      response.end(Buffer.from(await answered.arrayBuffer()))
    }
    answer().catch(() => response.destroy())
  })
  return { url: `${server.url}/events`, events, errors }
}

async function sdkClient(server: RunningServer, store: MCPEventStore) {
  const headers = { authorization: await one.bearer('alice') }
  const client = await createMCPClient({
    transport: { type: 'http', url: `${server.http.url}/mcp`, headers },
    experimental_events: { store },
  })
  onTestFinished(() => client.close())
  return client.experimental_events
}

function append(server: RunningServer, ...texts: readonly string[]): Promise<unknown> {
  const { eventsStore } = server.broker.as({ clientId: 'shop' })
  return Promise.all(texts.map((text) => eventsStore.publish('orders', { body: encodeText(text) })))
}

const SELECTED = { name: 'events_store.appended', arguments: { channel: 'orders' } }

test('M30 - the AI SDK subscribes, verifies the deliveries, renews and unsubscribes', async () => {
  const server = await serve(withWebhooks())
  const store = memoryStore()
  const receiver = await openSdkReceiver(store)
  const events = await sdkClient(server, store)
  const listed = await events.list()
  expect(listed.events.map(({ name }) => name)).toContain('events_store.appended')
  const delivery = { mode: 'webhook', url: receiver.url, allowInsecureLocalhost: true } as const
  const { id, truncated } = await events.subscribe({ ...SELECTED, delivery })
  expect(truncated).toBe(false)
  await append(server, 'one')
  await until(() => receiver.events.length === 1)
  expect(receiver.events[0]).toMatchObject({ name: SELECTED.name, data: { channel: 'orders', body: 'one' } })
  expect((await events.refresh({ id })).id).toBe(id)
  await append(server, 'two')
  await until(() => receiver.events.length === 2)
  await events.unsubscribe({ id })
  await append(server, 'three')
  // A second subscription gets the later events: the first one is gone by then.
  const again = await events.subscribe({ ...SELECTED, delivery })
  expect(again.id).not.toBe(id)
  await append(server, 'four')
  await until(() => receiver.events.length === 3)
  expect(receiver.events.map(({ data }) => data['body'])).toEqual(['one', 'two', 'four'])
  expect(receiver.errors).toEqual([])
})

test('M30 - the AI SDK gets the events of a restart', async () => {
  const folder = testFolder()
  const keyFile = join(folder, 'webhooks.key')
  const config = { ...withWebhooks({}, keyFile), store: { path: join(folder, 'store') } }
  const first = await serve(config)
  const store = memoryStore()
  const receiver = await openSdkReceiver(store)
  const delivery = { mode: 'webhook', url: receiver.url, allowInsecureLocalhost: true } as const
  await (await sdkClient(first, store)).subscribe({ ...SELECTED, delivery })
  await append(first, 'one')
  await until(() => receiver.events.length === 1)
  await first.close()
  const second = await serve(config)
  await append(second, 'two')
  await until(() => receiver.events.some(({ data }) => data['body'] === 'two'))
  expect(receiver.errors).toEqual([])
})

async function ask(server: RunningServer, method: string, params: object, authorization = ''): Promise<unknown> {
  const response = await fetch(`${server.http.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(authorization === '' ? {} : { authorization }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  })
  return response.json()
}

test('M29 - CONNECTORSMCP_EVENTS turns the events on, and a file adds types', async () => {
  const off = await serve({})
  expect(await ask(off, 'events/list', {})).toMatchObject({ error: { code: -32601 } })
  const eventTypesFile = join(testFolder(), 'types.yaml')
  writeFileSync(
    eventTypesFile,
    [
      '- name: order.paid',
      '  description: An order was paid.',
      '  channel: orders',
      '  payloadSchema: {type: object, required: [total]}',
      '',
    ].join('\n'),
  )
  const on = await serve({ connectors: { mcp: { events: true, eventTypesFile, eventCodes: 'sep' } } })
  expect(await ask(on, 'events/list', {})).toMatchObject({
    result: {
      events: [{ delivery: ['poll', 'push'] }, { delivery: ['push'] }, { delivery: ['push'] }, { name: 'order.paid' }],
    },
  })
  expect(await ask(on, 'events/poll', { name: 'x' })).toMatchObject({ error: { code: -32023 } })
})

test.each([
  ['text: [', 'it is not YAML'],
  ['name: x', 'it is not an array of event types'],
  ['- 7', 'event type 1: it is not an object'],
  ['- {name: x, description: d, channel: c}', 'payloadSchema is missing'],
  ['- {name: "a b", description: d, channel: c, payloadSchema: {}}', 'the name must have 1 to 128 letters'],
  ['- {name: x, description: d, channel: "c.>", payloadSchema: {}}', 'event type x: '],
  ['- {name: events.published, description: d, channel: c, payloadSchema: {}}', 'the name is used already'],
])('M29 - the event types %j stop the start', async (text, problem) => {
  const eventTypesFile = join(testFolder(), 'types.yaml')
  writeFileSync(eventTypesFile, text)
  await expect(serve({ connectors: { mcp: { events: true, eventTypesFile } } })).rejects.toThrow(problem)
})

test('M30 - /ce/subscriptions does not show the subscriptions of /mcp', async () => {
  const server = await serve(withWebhooks())
  const store = memoryStore()
  const receiver = await openSdkReceiver(store)
  const delivery = { mode: 'webhook', url: receiver.url, allowInsecureLocalhost: true } as const
  const { id } = await (await sdkClient(server, store)).subscribe({ ...SELECTED, delivery })
  const authorization = await one.bearer('alice')
  const get = (path: string, method = 'GET') =>
    fetch(`${server.http.url}${path}`, { method, headers: { authorization } })
  expect(await (await get('/ce/subscriptions')).json()).toEqual([])
  expect((await get(`/ce/subscriptions/${id}`)).status).toBe(404)
  expect((await get(`/ce/subscriptions/${id}`, 'DELETE')).status).toBe(404)
})

test('M29 - the event types in docs/guides/events.md are valid', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/events.md'), 'utf8')
  const [, text = ''] = /```yaml\n([^]*?)```/.exec(page) ?? []
  const eventTypesFile = join(testFolder(), 'types.yaml')
  writeFileSync(eventTypesFile, text)
  const server = await serve({ connectors: { mcp: { events: true, eventTypesFile } } })
  const { result } = (await ask(server, 'events/poll', { name: 'order.paid' })) as { result: { cursor: string } }
  await append(server, '{"total":1}')
  const polled = await ask(server, 'events/poll', { name: 'order.paid', cursor: result.cursor })
  expect(polled).toMatchObject({ result: { events: [{ data: { total: 1 } }] } })
})
