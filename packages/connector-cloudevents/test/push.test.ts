import { encodeText } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { isSignedWith, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, test } from 'vitest'

import { openCe } from './ce-server.ts'
import type { Loose } from '@signalbox/testkit/sse-client'

async function call(
  base: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; answer: Loose }> {
  const response = await fetch(`${base}/ce/${path}`, {
    method,
    ...(body === undefined
      ? {}
      : {
          headers: { 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  })
  const text = await response.text()
  return { status: response.status, answer: text === '' ? undefined : JSON.parse(text) }
}

test('push - a subscription is created, shown, listed and deleted', async () => {
  const { base } = await openCe({ webhooks: true })
  const { url } = await openReceiver()
  const config = { channel: 'orders', ordered: false, secret: `whsec_${Buffer.alloc(32).toString('base64')}` }
  const filters = [{ sql: "type = 'a'" }, { sql: 'total > 1' }]
  const created = await call(base, 'POST', 'subscriptions', { sink: url, config, filters })
  expect(created).toMatchObject({
    status: 201,
    answer: { sink: url, filters: [{ sql: "(type = 'a') AND (total > 1)" }], status: { state: 'active' } },
  })
  const { id } = created.answer
  expect(await call(base, 'GET', `subscriptions/${id}`)).toMatchObject({ status: 200, answer: { id } })
  expect((await call(base, 'GET', 'subscriptions')).answer).toMatchObject([{ id }])
  expect(await call(base, 'DELETE', `subscriptions/${id}`)).toMatchObject({ status: 200, answer: { id } })
  expect(await call(base, 'GET', `subscriptions/${id}`)).toMatchObject({
    status: 404,
    answer: { data: { code: 'SUBSCRIPTION_UNKNOWN' } },
  })
})

test('push - a new secret signs at once, and the last one for a day more', async () => {
  const { base, user } = await openCe({ webhooks: true })
  const { url, received } = await openReceiver()
  const created = await call(base, 'POST', 'subscriptions', { sink: url, config: { channel: 'orders' } })
  const { id, config } = created.answer
  const rotated = await call(base, 'POST', `subscriptions/${id}/secret`)
  expect(rotated).toEqual({ status: 200, answer: { id, secret: expect.stringMatching(/^whsec_/) } })
  expect(rotated.answer.secret).not.toBe(config.secret)
  await user.eventsStore.publish('orders', { body: encodeText('hello') })
  await until(() => received.length === 1)
  expect(received.map((one) => [isSignedWith(config.secret, one), isSignedWith(rotated.answer.secret, one)])).toEqual([
    [true, true],
  ])
  expect(await call(base, 'POST', 'subscriptions/other/secret')).toMatchObject({
    status: 404,
    answer: { data: { code: 'SUBSCRIPTION_UNKNOWN' } },
  })
  const wrong = await fetch(`${base}/ce/subscriptions/${id}/secret`)
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
})

test('push - messages that are no events have a content type in binary mode', async () => {
  const { base, user } = await openCe({ webhooks: true })
  const { url, received } = await openReceiver()
  const config = { channel: 'orders', mode: 'binary' }
  expect(await call(base, 'POST', 'subscriptions', { sink: url, config })).toMatchObject({ status: 201 })
  for (const body of ['{"n":1}', 'text', '']) await user.eventsStore.publish('orders', { body: encodeText(body) })
  await user.eventsStore.publish('orders', { body: new Uint8Array([0xff, 0x00]) })
  await until(() => received.length === 4)
  expect(received.map(({ headers }) => headers['content-type'])).toEqual([
    'application/json',
    'text/plain',
    undefined,
    'application/octet-stream',
  ])
})

test.each([
  ['events', 'structured', /^application\/cloudevents\+json/],
  ['events_store', 'batch', /^application\/cloudevents-batch\+json/],
  ['queues', 'structured', /^application\/cloudevents\+json/],
] as const)('push - messages of %s are delivered in %s mode', async (type, mode, contentType) => {
  const { base, user } = await openCe({ webhooks: true })
  const { url, received } = await openReceiver()
  const config = { channel: 'orders', type, mode }
  expect(await call(base, 'POST', 'subscriptions', { sink: url, config })).toMatchObject({ status: 201 })
  const message = { body: encodeText('hello') }
  const send = {
    events: () => user.events.publish('orders', message),
    events_store: () => user.eventsStore.publish('orders', message),
    queues: () => user.queues.send('orders', message),
  }
  await until(async () => {
    if (received.length === 0) await send[type]()
    return received.length > 0
  })
  expect(received[0]?.headers['content-type']).toMatch(contentType)
  expect(received[0]?.body).toContain('hello')
})

const SINK = 'http://127.0.0.1:9/'

test.each([
  ['no JSON', '{', 'SUBSCRIPTION_INVALID'],
  ['no sink', { config: { channel: 'orders' } }, 'SUBSCRIPTION_INVALID'],
  [
    'a filter that is no CESQL',
    { sink: SINK, config: { channel: 'o' }, filters: [{ sql: 'a) OR (b' }] },
    'SUBSCRIPTION_INVALID',
  ],
  ['a private address', { sink: 'https://10.0.0.1/', config: { channel: 'orders' } }, 'ENDPOINT_REFUSED'],
  ['an endpoint that does not answer', { sink: SINK, config: { channel: 'orders' } }, 'ENDPOINT_UNVERIFIED'],
  ['a reserved channel', { sink: SINK, config: { channel: '_AGENTS_.x' } }, 'CHANNEL_RESERVED'],
])('push - a subscription with %s is refused', async (_name, body, code) => {
  const { base } = await openCe({ webhooks: true })
  expect(await call(base, 'POST', 'subscriptions', body)).toMatchObject({ status: 400, answer: { data: { code } } })
  expect((await call(base, 'GET', 'subscriptions')).answer).toEqual([])
})

test('push - other methods and paths, and a query, are refused', async () => {
  const { base } = await openCe({ webhooks: true })
  expect((await fetch(`${base}/ce/subscriptions`, { method: 'PUT' })).status).toBe(405)
  expect((await fetch(`${base}/ce/subscriptions/no%20id`)).status).toBe(404)
  expect(await call(base, 'GET', 'subscriptions?x=1')).toMatchObject({
    status: 400,
    answer: { data: { code: 'PARAMETER_INVALID' } },
  })
})
