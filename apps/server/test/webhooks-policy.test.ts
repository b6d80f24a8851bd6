import { join } from 'node:path'

import { replaceFile, testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { serve } from './support/server.ts'
import { governed, issuer, policyText, trusting } from './support/tokens.ts'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'

const one = issuer()

test('webhooks - the policy decides who may subscribe, and ends subscriptions that it no longer allows', async () => {
  const publisher = { clients: 'shop', patterns: 'events_store', channels: 'orders' }
  const policy = governed(
    publisher,
    { clients: 'alice', patterns: 'events_store', actions: ['subscribe'], channels: 'orders' },
    { clients: 'alice', patterns: 'queues', actions: ['subscribe'] },
  )
  const server = await serve({
    ...trusting(one),
    ...policy,
    webhooks: { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] },
  })
  const endpoint = await openReceiver()
  const send = async (clientId: string, method: string, path: string, type = 'application/json', body?: object) =>
    fetch(`${server.http.url}${path}`, {
      method,
      headers: { authorization: await one.bearer(clientId), ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const subscribe = (clientId: string, config: object): Promise<Response> =>
    send(clientId, 'POST', '/ce/subscriptions', undefined, { sink: endpoint.url, config })
  const publish = (id: string): Promise<Response> =>
    send('shop', 'POST', '/ce/send/event-store?channel=orders', 'application/cloudevents+json', {
      specversion: '1.0',
      id,
      source: '/shop',
      type: 'order.paid',
    })

  expect((await fetch(`${server.http.url}/ce/subscriptions`)).status).toBe(401)
  expect((await subscribe('bob', { channel: 'orders' })).status).toBe(403)
  expect((await subscribe('alice', { channel: 'invoices' })).status).toBe(403)
  // Deliveries remove the messages of a queue.
  expect((await subscribe('alice', { channel: 'jobs', type: 'queues' })).status).toBe(403)
  const created = await subscribe('alice', { channel: 'orders' })
  expect(created.status).toBe(201)
  const { id } = (await created.json()) as { id: string }
  expect((await send('bob', 'GET', `/ce/subscriptions/${id}`)).status).toBe(404)
  expect((await send('bob', 'DELETE', `/ce/subscriptions/${id}`)).status).toBe(404)
  expect((await publish('1')).status).toBe(202)
  await until(() => endpoint.received.length === 1)

  replaceFile(policy.authorization?.policyFile ?? '', policyText(publisher))
  let n = 2
  await until(async () => {
    await publish(String(n++))
    const { status } = (await (await send('alice', 'GET', `/ce/subscriptions/${id}`)).json()) as {
      status: { state: string; reason?: string }
    }
    return status.state === 'disabled'
  })
  const shown = (await (await send('alice', 'GET', `/ce/subscriptions/${id}`)).json()) as { status: object }
  expect(shown.status).toMatchObject({
    state: 'disabled',
    reason: 'the policy does not let the owner have messages of this channel',
  })
})
