import { createHmac } from 'node:crypto'
import { join } from 'node:path'

import { groupFolder, testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import type { RunningServer } from '../src/server.ts'
import { serve, serveAll } from './support/server.ts'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'

function settings(folder: string): PartialConfig {
  return { webhooks: { enable: true, keyFile: join(folder, 'webhooks.key'), allow: ['127.0.0.1'] } }
}

function openServer(): Promise<RunningServer> {
  return serve(settings(testFolder()))
}

const keys = groupFolder()
/** A server at which the tests leave nothing. */
const unchanged = serveAll(() => settings(keys))

async function call(server: RunningServer, method: string, path: string, body?: unknown) {
  const response = await fetch(`${server.http.url}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const answer: unknown = await response.json()
  return { status: response.status, answer }
}

async function publish(server: RunningServer, event: object): Promise<void> {
  const response = await fetch(`${server.http.url}/ce/send/event-store?channel=orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json' },
    body: JSON.stringify({ specversion: '1.0', source: '/shop', type: 'order.paid', ...event }),
  })
  expect(response.status).toBe(202)
}

test('webhooks - /ce/subscriptions delivers CloudEvents with signatures', async () => {
  const server = await openServer()
  const endpoint = await openReceiver()
  const created = await call(server, 'POST', '/ce/subscriptions', { sink: endpoint.url, config: { channel: 'orders' } })
  expect(created).toMatchObject({
    status: 201,
    answer: {
      sink: endpoint.url,
      protocol: 'HTTP',
      config: { channel: 'orders', type: 'events_store', mode: 'structured', ordered: true },
      filters: [],
      status: { state: 'active', next_sequence: 1 },
    },
  })
  const { id, config } = created.answer as { id: string; config: { secret: string } }
  await publish(server, { id: '1', data: { total: 2 } })
  await until(() => endpoint.received.length === 1)
  const [delivery] = endpoint.received
  expect(JSON.parse(delivery?.body ?? '')).toMatchObject({ id: '1', source: '/shop', data: { total: 2 } })
  expect(delivery?.headers['content-type']).toMatch(/^application\/cloudevents\+json/)
  const { 'webhook-id': messageId, 'webhook-timestamp': time, 'webhook-signature': signature } = delivery?.headers ?? {}
  const key = Buffer.from(config.secret.slice('whsec_'.length), 'base64')
  const expected = createHmac('sha256', key)
    .update(`${String(messageId)}.${String(time)}.${delivery?.body ?? ''}`)
    .digest('base64')
  expect(signature).toBe(`v1,${expected}`)

  const shown = await call(server, 'GET', `/ce/subscriptions/${id}`)
  expect(shown).toMatchObject({ status: 200, answer: { id } })
  expect(JSON.stringify([shown, await call(server, 'GET', '/ce/subscriptions')])).not.toContain('whsec_')
  expect(await call(server, 'DELETE', `/ce/subscriptions/${id}`)).toMatchObject({ status: 200 })
  expect(await call(server, 'GET', `/ce/subscriptions/${id}`)).toMatchObject({
    status: 404,
    answer: { is_error: true, data: { code: 'SUBSCRIPTION_UNKNOWN' } },
  })
})

test('webhooks - binary mode has the attributes in headers, and batch mode several events', async () => {
  const server = await openServer()
  const [binary, batch] = [await openReceiver(), await openReceiver()]
  const data = { subject: undefined, datacontenttype: 'text/plain', data: 'grüße' }
  for (const id of ['1', '2', '3']) await publish(server, { id, ...data, note: 'a "b" ü' })
  for (const [sink, mode] of [
    [binary.url, 'binary'],
    [batch.url, 'batch'],
  ]) {
    const config = { channel: 'orders', mode, start: 'first' }
    expect(await call(server, 'POST', '/ce/subscriptions', { sink, config })).toMatchObject({ status: 201 })
  }
  await until(() => binary.received.length === 3)
  expect(binary.received[0]).toMatchObject({
    body: 'grüße',
    headers: { 'content-type': 'text/plain', 'ce-id': '1', 'ce-type': 'order.paid', 'ce-note': 'a%20%22b%22%20%C3%BC' },
  })
  const events = (): { id: string }[] => batch.received.flatMap(({ body }) => JSON.parse(body) as { id: string }[])
  await until(() => events().length === 3)
  expect(events().map(({ id }) => id)).toEqual(['1', '2', '3'])
  expect(batch.received[0]?.headers['content-type']).toMatch(/^application\/cloudevents-batch\+json/)
})

test('webhooks - all filters must be true', async () => {
  const server = await openServer()
  const endpoint = await openReceiver()
  const filters = [{ sql: "type = 'order.paid'" }, { sql: 'total > 10' }]
  const body = { sink: endpoint.url, config: { channel: 'orders' }, filters }
  expect(await call(server, 'POST', '/ce/subscriptions', body)).toMatchObject({ status: 201 })
  await publish(server, { id: '1', total: 5 })
  await publish(server, { id: '2', total: 50 })
  await publish(server, { id: '3', total: 50, type: 'order.open' })
  await publish(server, { id: '4', total: 11 })
  await until(() => endpoint.received.length === 2)
  expect(endpoint.received.map(({ body: text }) => JSON.parse(text).id)).toEqual(['2', '4'])
})

test.each([
  [{ config: { channel: 'orders' } }, 'SUBSCRIPTION_INVALID'],
  [{ sink: 'http://127.0.0.1:9/', protocol: 'MQTT', config: { channel: 'orders' } }, 'SUBSCRIPTION_INVALID'],
  [{ sink: 'http://127.0.0.1:9/', config: { channel: 'orders' }, filters: [{ exact: {} }] }, 'SUBSCRIPTION_INVALID'],
  [{ sink: 'http://127.0.0.1:9/', config: { channel: 'o' }, filters: [{ sql: 'x) OR (y' }] }, 'SUBSCRIPTION_INVALID'],
  [{ sink: 'https://10.0.0.1/', config: { channel: 'orders' } }, 'ENDPOINT_REFUSED'],
  [{ sink: 'http://127.0.0.1:9/', config: { channel: 'orders' } }, 'ENDPOINT_UNVERIFIED'],
  [{ sink: 'http://127.0.0.1:9/', config: { channel: '_AGENTS_.discovery' } }, 'CHANNEL_RESERVED'],
])('webhooks - the subscription %j is refused with %s', async (body, code) => {
  expect(await call(unchanged(), 'POST', '/ce/subscriptions', body)).toMatchObject({
    status: 400,
    answer: { is_error: true, data: { code } },
  })
})

test('webhooks - the server itself is no endpoint', async () => {
  const server = unchanged()
  const body = { sink: `${server.http.url}/ce/send/event`, config: { channel: 'orders' } }
  expect(await call(server, 'POST', '/ce/subscriptions', body)).toMatchObject({
    answer: { data: { code: 'ENDPOINT_REFUSED' } },
  })
})

test('webhooks - the path is unknown while webhooks are off, and they need a key file', async () => {
  const server = await serve()
  expect((await fetch(`${server.http.url}/ce/subscriptions`)).status).toBe(404)
  expect((await fetch(`${server.http.url}/ce/subscriptions`, { method: 'POST' })).status).toBe(404)
  expect(() => createConfig({ webhooks: { enable: true } })).toThrow(
    'webhooks.keyFile: webhooks are on and have no key',
  )
})

test('webhooks - metrics count attempts and subscriptions, and the audit log has the creation', async () => {
  const server = await openServer()
  const endpoint = await openReceiver()
  await call(server, 'POST', '/ce/subscriptions', { sink: endpoint.url, config: { channel: 'orders' } })
  await publish(server, { id: '1' })
  await until(() => endpoint.received.length === 1)
  await until(async () => {
    const page = await (await fetch(`${server.api.url}/metrics`)).text()
    return page.includes('broker_webhook_attempt_duration_seconds_count{outcome="delivered"} 1\n')
  })
  const page = await (await fetch(`${server.api.url}/metrics`)).text()
  expect(page).toContain('broker_webhook_subscriptions{state="active"} 1\n')
  const audit = async () => (await fetch(`${server.api.url}/api/audit?action=create_webhook`)).text()
  await expect.poll(audit).toContain('"action":"create_webhook"')
  expect(await audit()).not.toContain('/hook')
})

test('webhooks - operators list, pause, resume, test and redeliver subscriptions', async () => {
  const server = await openServer()
  const endpoint = await openReceiver()
  const { answer } = await call(server, 'POST', '/ce/subscriptions', {
    sink: `${endpoint.url}?token=hidden`,
    config: { channel: 'orders' },
  })
  const { id } = answer as { id: string }
  const act = async (action: string, args: object): Promise<unknown> => {
    const response = await fetch(`${server.api.url}/api/actions/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(args),
    })
    return response.json()
  }
  const page = await (await fetch(`${server.api.url}/api/webhooks`)).text()
  expect(JSON.parse(page)).toMatchObject({ data: { items: [{ id, owner: 'anonymous', state: 'active' }], total: 1 } })
  expect(page).not.toContain('hidden')
  expect(await act('pause_webhook', { id })).toMatchObject({ error: false, data: { id, state: 'paused' } })
  await publish(server, { id: '1' })
  expect(await act('test_webhook', { id })).toMatchObject({ data: { id, status: 204 } })
  expect(endpoint.received.map(({ headers }) => headers['webhook-id'])).toEqual([expect.stringMatching(/^test_/)])
  expect(await act('resume_webhook', { id })).toMatchObject({ data: { state: 'active' } })
  await until(() => endpoint.received.length === 2)
  expect(await act('redeliver_webhook', { id, sequence: 1 })).toMatchObject({ data: { next_sequence: 1 } })
  await until(() => endpoint.received.length === 3)
  expect(await act('rotate_webhook_secret', { id })).toMatchObject({
    error: false,
    data: { id, secret: expect.stringMatching(/^whsec_/) },
  })
  expect(await act('pause_webhook', { id: 'nobody' })).toMatchObject({
    error: true,
    data: { code: 'WEBHOOK_NOT_FOUND' },
  })
})
