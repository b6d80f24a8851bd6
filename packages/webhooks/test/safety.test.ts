import type { LookupAddress } from 'node:dns'

import { until } from '@signalbox/testkit/until'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { EndpointPolicy, WebhookError } from '../src/index.ts'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { openBench, toOrders } from './webhook-bench.ts'

/** Resolves every name to these addresses. */
function resolving(...addresses: readonly string[]) {
  return async (): Promise<readonly LookupAddress[]> =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

test.each([
  'http://example.com/',
  'ftp://example.com/',
  'https://user:secret@example.com/',
  'https://example.com/#part',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://2130706433/',
  'https://10.1.2.3/',
  'https://169.254.169.254/latest',
  'https://[::ffff:10.0.0.1]/',
  'https://[64:ff9b::a00:1]/',
  'https://[2002:a00:1::]/',
  'https://[fd00::1]/',
  'https://metadata.google.internal/',
  'not a url',
])('safety - the endpoint %s is refused', async (url) => {
  const policy = new EndpointPolicy({ resolve: resolving('93.184.216.34') })
  await expect(policy.check(url)).rejects.toMatchObject({ code: 'ENDPOINT_REFUSED' })
})

test('safety - a name with one private address is refused, and one with public addresses is allowed', async () => {
  const mixed = new EndpointPolicy({ resolve: resolving('93.184.216.34', '10.0.0.1') })
  await expect(mixed.check('https://example.com/')).rejects.toMatchObject({ code: 'ENDPOINT_REFUSED' })
  const open = new EndpointPolicy({ resolve: resolving('93.184.216.34', '2606:2800:220:1::1') })
  expect((await open.check('https://example.com/')).href).toBe('https://example.com/')
})

test('safety - the allow list permits private hosts and plain http, but not cloud metadata or the server itself', async () => {
  const policy = new EndpointPolicy({
    allow: ['10.0.0.0/8', '*.internal.example', '169.254.0.0/16', '127.0.0.1'],
    ownAddresses: () => [{ host: '0.0.0.0', port: 9090 }],
    resolve: resolving('10.0.0.1'),
  })
  await expect(policy.check('http://10.1.2.3/')).resolves.toBeInstanceOf(URL)
  await expect(policy.check('http://a.internal.example/')).resolves.toBeInstanceOf(URL)
  await expect(policy.check('http://127.0.0.1:8000/')).resolves.toBeInstanceOf(URL)
  await expect(policy.check('http://169.254.169.254/')).rejects.toMatchObject({ code: 'ENDPOINT_REFUSED' })
  await expect(policy.check('http://127.0.0.1:9090/')).rejects.toMatchObject({ code: 'ENDPOINT_REFUSED' })
})

test('safety - a name that later resolves to a private address gets no connection', async () => {
  const receiver = await openReceiver()
  receiver.reply = answer(204, { connection: 'close' })
  let addresses = ['127.0.0.1']
  const endpointPolicy = new EndpointPolicy({
    allow: ['hooks.example', '127.0.0.1'],
    resolve: async () => resolving(...addresses)(),
  })
  const { webhooks, publish } = await openBench({ endpointPolicy })
  const { subscription } = await webhooks.create(toOrders(`http://hooks.example:${receiver.port}/`))
  await publish('orders', 'one')
  await until(() => receiver.bodies.length === 1)
  // The name is allowed; the metadata address never is.
  addresses = ['169.254.169.254']
  await publish('orders', 'two')
  await until(async () => (await webhooks.get(subscription.id)).state === 'failing')
  expect(await webhooks.get(subscription.id)).toMatchObject({ reason: expect.stringContaining('no permitted address') })
  expect(receiver.bodies).toEqual(['one'])
})

test('safety - an endpoint that does not agree gets no subscription', async () => {
  const { webhooks } = await openBench({ origin: 'broker.example' })
  const asked: unknown[] = []
  const { url } = await testServer((request, response) => {
    asked.push([request.method, request.headers['webhook-request-origin']])
    response.writeHead(200, { 'WebHook-Allowed-Origin': 'other.example' }).end()
  })
  await expect(webhooks.create(toOrders(`${url}/`))).rejects.toMatchObject({
    code: 'ENDPOINT_UNVERIFIED',
  })
  expect(asked).toEqual([['OPTIONS', 'broker.example']])
  expect(webhooks.list()).toEqual([])
})

test('safety - an owner has at most as many subscriptions as allowed, and sees only his own', async () => {
  const { webhooks } = await openBench({ maxPerOwner: 1 })
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await expect(webhooks.create(toOrders(receiver.url))).rejects.toMatchObject({ code: 'SUBSCRIPTION_LIMIT' })
  await webhooks.create(toOrders(receiver.url, { owner: 'bob' }))
  expect(webhooks.list('alice')).toMatchObject([{ id: subscription.id }])
  await expect(webhooks.get(subscription.id, 'bob')).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN' })
  await expect(webhooks.delete(subscription.id, 'bob')).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN' })
})

test('safety - one endpoint that hangs does not delay another', async () => {
  const { webhooks, publish } = await openBench({ maxInFlight: 32 })
  const [slow, fast] = [await openReceiver(), await openReceiver()]
  slow.reply = () => {}
  await webhooks.create(toOrders(slow.url, { ordered: false }))
  await webhooks.create(toOrders(fast.url))
  await publish('orders', ...Array.from({ length: 40 }, (_, i) => `m${i}`))
  await until(() => fast.bodies.length === 40)
  expect(slow.received.length).toBeLessThanOrEqual(16)
})

test('safety - one endpoint that hangs does not delay another of the same host', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = (response, received) => {
    if (received.path === '/fast') answer(204)(response, received)
  }
  await webhooks.create(toOrders(receiver.url, { ordered: false }))
  await publish('orders', ...Array.from({ length: 20 }, (_, i) => `slow${i}`))
  await until(() => receiver.received.length === 16)
  await webhooks.create(toOrders(new URL('/fast', receiver.url).href))
  await publish('orders', 'one', 'two')
  const fast = (): readonly string[] => receiver.received.filter(({ path }) => path === '/fast').map(({ body }) => body)
  await until(() => fast().length === 2)
  expect(fast()).toEqual(['one', 'two'])
})

test('safety - failed handshakes are limited for a caller and for a host, and successful ones are not', async () => {
  const { webhooks } = await openBench({ maxFailedHandshakes: 2 })
  const willing = await openReceiver()
  let asked = 0
  const unwilling = await testServer((_request, response) => {
    asked++
    response.writeHead(403).end()
  })
  const url = `${unwilling.url}/`
  const codesOf = async (owner: string, count: number): Promise<readonly unknown[]> => {
    const results = await Promise.allSettled(
      Array.from({ length: count }, () => webhooks.create(toOrders(url, { owner }))),
    )
    return results.map((one) =>
      one.status === 'rejected' && one.reason instanceof WebhookError ? one.reason.code : '',
    )
  }
  for (let i = 0; i < 5; i++) await webhooks.create(toOrders(willing.url))
  // At the same time: a handshake in progress counts as well.
  const codes = await codesOf('alice', 5)
  expect(codes.filter((code) => code === 'ENDPOINT_UNVERIFIED')).toHaveLength(2)
  expect(codes.filter((code) => code === 'HANDSHAKE_LIMIT')).toHaveLength(3)
  expect(asked).toBe(2)
  await expect(webhooks.create(toOrders(willing.url))).rejects.toThrow(
    /^2 handshakes of the caller failed in a minute \(WEBHOOKS_MAX_FAILED_HANDSHAKES is 2\); try again in \d+ s$/,
  )
  // Other callers are not concerned, until the host has refused four times as many.
  for (const owner of ['bob', 'carol', 'dave', 'erin']) await codesOf(owner, 3)
  expect(asked).toBe(8)
  await expect(webhooks.create(toOrders(url, { owner: 'frank' }))).rejects.toMatchObject({ code: 'HANDSHAKE_LIMIT' })
  await webhooks.create(toOrders(willing.url, { owner: 'erin' }))
})
