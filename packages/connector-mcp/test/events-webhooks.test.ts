import { answer, isSignedWith, openReceiver } from '@signalbox/testkit/webhook-receiver'
import type { Received, Receiver } from '@signalbox/testkit/webhook-receiver'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import type { EventHost } from './event-host.ts'
import { ENGINES, startEventHost, storeOf } from './event-host.ts'

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const NEXT_SECRET = `whsec_${Buffer.alloc(32, 2).toString('base64')}`
const ORDERS = { name: 'events_store.appended', arguments: { channel: 'orders' } }

/** An endpoint that agrees to subscriptions, and the deliveries that it received. */
interface Endpoint {
  readonly url: string
  readonly verifications: Received[]
  readonly deliveries: Received[]
  readonly receiver: Receiver
  /** The answer to deliveries. */
  status: number
}

async function openEndpoint(): Promise<Endpoint> {
  const receiver = await openReceiver()
  const endpoint: Endpoint = { url: receiver.url, verifications: [], deliveries: [], receiver, status: 204 }
  receiver.reply = (response, received) => {
    const body = JSON.parse(received.body) as { type?: string; challenge?: string }
    if (body.type === 'verification') {
      endpoint.verifications.push(received)
      answer(200, {}, JSON.stringify({ challenge: body.challenge }))(response, received)
    } else {
      endpoint.deliveries.push(received)
      answer(endpoint.status)(response, received)
    }
  }
  return endpoint
}

function delivery(url: string, secret = SECRET): object {
  return { mode: 'webhook', url, secret }
}

interface Subscribed {
  readonly id: string
  readonly refreshBefore: string | null
  readonly cursor: string | null
  readonly truncated: boolean
}

async function subscribe(host: EventHost, url: string, more: object = {}): Promise<Subscribed> {
  const { result, error } = await host.ask('events/subscribe', { ...ORDERS, delivery: delivery(url), ...more })
  expect(error).toBeUndefined()
  return result as unknown as Subscribed
}

function eventOf({ body }: Received) {
  return JSON.parse(body) as { eventId: string; name: string; cursor: string; data: { body?: string } }
}

function bodies({ deliveries }: Endpoint): (string | undefined)[] {
  return deliveries.map((each) => eventOf(each).data.body)
}

describe.each(ENGINES)('on %s', (engine) => {
  test('M30 - an endpoint agrees, and gets signed events with the position after each', async () => {
    const host = await startEventHost({ open: await storeOf(engine), webhooks: true })
    const endpoint = await openEndpoint()
    await host.append('orders', 'before')
    const { id, refreshBefore, cursor, truncated } = await subscribe(host, endpoint.url)
    const day = Date.parse(refreshBefore ?? '') - Date.now()
    expect([truncated, day > 86_000_000, day <= 86_400_000]).toEqual([false, true, true])
    const [verification] = endpoint.verifications
    expect(verification?.headers['webhook-id']).toMatch(/^msg_verification_[\w-]{22}$/)
    expect(verification?.headers).toMatchObject({ 'x-mcp-subscription-id': id, 'content-type': 'application/json' })
    expect(verification && isSignedWith(SECRET, verification)).toBe(true)
    await host.append('orders', 'one', 'two')
    await until(() => endpoint.deliveries.length === 2)
    const [first] = endpoint.deliveries
    const event = first && eventOf(first)
    expect(event).toMatchObject({
      name: 'events_store.appended',
      data: { channel: 'orders', body: 'one', sequence: 2 },
    })
    expect(first?.headers).toMatchObject({ 'webhook-id': event?.eventId, 'x-mcp-subscription-id': id })
    expect(first && isSignedWith(SECRET, first)).toBe(true)
    // A poll from either position has the same events.
    const polled = await host.ask('events/poll', { ...ORDERS, cursor })
    expect(polled.result?.['events']).toMatchObject([{ eventId: event?.eventId }, { data: { body: 'two' } }])
    const later = await host.ask('events/poll', { ...ORDERS, cursor: event?.cursor })
    expect(later.result?.['events']).toMatchObject([{ data: { body: 'two' } }])
    expect(host.failures).toEqual([])
  })

  test('M30 - a subscription continues after a restart, and events of that time are delivered', async () => {
    const open = await storeOf(engine)
    const before = await startEventHost({ open, webhooks: true })
    const endpoint = await openEndpoint()
    const { id } = await subscribe(before, endpoint.url)
    await before.append('orders', 'one')
    await until(() => endpoint.deliveries.length === 1)
    await before.close()
    const between = await startEventHost({ open })
    await between.append('orders', 'two')
    await between.close()
    const after = await startEventHost({ open, webhooks: true })
    await until(() => bodies(endpoint).includes('two'))
    // The endpoint is known: a renewal asks for no new consent.
    const renewed = await subscribe(after, endpoint.url)
    expect([renewed.id, endpoint.verifications.length]).toEqual([id, 1])
  })
})

describe('webhooks', () => {
  test('M30 - the key of a subscription is its caller, endpoint, type and arguments', async () => {
    const types = [{ name: 'paid', description: 'Paid.', channel: 'orders', payloadSchema: { type: 'object' } }]
    const host = await startEventHost({ webhooks: true, types })
    const [one, two] = [await openEndpoint(), await openEndpoint()]
    const { id } = await subscribe(host, one.url)
    expect((await subscribe(host, one.url, { ttlMs: 120_000 })).id).toBe(id)
    const others = [
      await subscribe(host, two.url),
      await subscribe(host, one.url, { arguments: { channel: 'other' } }),
      await subscribe(host, one.url, { name: 'paid', arguments: {} }),
    ]
    const bobs = await host.ask('events/subscribe', { ...ORDERS, delivery: delivery(one.url) }, { client: 'bob' })
    expect(new Set([id, ...others.map((each) => each.id), bobs.result?.['id']]).size).toBe(5)
  })

  test('M30 - a renewal keeps the position, replaces the secret and sets the end', async () => {
    const host = await startEventHost({ webhooks: true })
    const endpoint = await openEndpoint()
    const first = await subscribe(host, endpoint.url, { ttlMs: 1 })
    // A subscription has at least a minute.
    expect(Date.parse(first.refreshBefore ?? '')).toBeGreaterThan(Date.now() + 50_000)
    await host.append('orders', 'one')
    await until(() => endpoint.deliveries.length === 1)
    const again = await host.ask('events/subscribe', {
      ...ORDERS,
      delivery: delivery(endpoint.url, NEXT_SECRET),
      cursor: first.cursor,
      ttlMs: null,
    })
    expect(again.result).toMatchObject({ id: first.id, refreshBefore: null, truncated: false })
    await host.append('orders', 'two')
    await until(() => bodies(endpoint).includes('two'))
    const last = endpoint.deliveries.at(-1)
    expect(last && [isSignedWith(SECRET, last), isSignedWith(NEXT_SECRET, last)]).toEqual([true, true])
  })

  test('M30 - a subscription begins at a cursor, truncated if retention has passed it', async () => {
    const host = await startEventHost({ webhooks: true })
    await host.system.channels.create('events_store', 'orders', { maxBytes: 40_000 })
    await host.append('orders', 'one')
    const { result } = await host.ask('events/poll', ORDERS)
    const cursor = result?.['cursor']
    await host.append('orders', 'two')
    const endpoint = await openEndpoint()
    expect(await subscribe(host, endpoint.url, { cursor })).toMatchObject({ cursor, truncated: false })
    await until(() => bodies(endpoint).includes('two'))
    for (let n = 0; n < 12; n++) await host.append('orders', 'x'.repeat(9_000))
    await until(async () => ((await host.system.eventsStore.read('orders', { maxMessages: 1 }))[0]?.sequence ?? 0) > 3)
    const late = await openEndpoint()
    expect((await subscribe(host, late.url, { cursor })).truncated).toBe(true)
    await until(() => late.deliveries.length > 0)
  })

  test('M30 - unsubscribing ends the deliveries, and again is no error but for clients of SEP-3415', async () => {
    const host = await startEventHost({ webhooks: true })
    const endpoint = await openEndpoint()
    await subscribe(host, endpoint.url)
    const end = { ...ORDERS, delivery: { url: endpoint.url } }
    expect((await host.ask('events/unsubscribe', end, { client: 'bob' })).result).toBeDefined()
    await host.append('orders', 'one')
    await until(() => endpoint.deliveries.length === 1)
    for (let n = 0; n < 2; n++) {
      expect((await host.ask('events/unsubscribe', end)).result).toMatchObject({ resultType: 'complete' })
    }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { events: {} } }
    expect((await host.ask('events/unsubscribe', end, { meta })).error?.code).toBe(-32023)
    await host.append('orders', 'two')
    await subscribe(host, endpoint.url)
    await host.append('orders', 'three')
    await until(() => endpoint.deliveries.length === 2)
    expect(bodies(endpoint)).toEqual(['one', 'three'])
  })

  test('M30 - a new policy ends the deliveries before the next attempt', async () => {
    const allowed = { clients: ['alice'] }
    const host = await startEventHost({ webhooks: true, policy: [allowed] })
    const endpoint = await openEndpoint()
    await subscribe(host, endpoint.url)
    await host.append('orders', 'one')
    await until(() => endpoint.deliveries.length === 1)
    host.setPolicy({ ...allowed, channels: ['other'] })
    await host.append('orders', 'two')
    const refused = await host.ask('events/subscribe', { ...ORDERS, delivery: delivery(endpoint.url) })
    expect(refused.error?.code).toBe(-32012)
    host.setPolicy(allowed)
    await subscribe(host, endpoint.url)
    await until(() => bodies(endpoint).includes('two'))
    expect(bodies(endpoint)).toEqual(['one', 'two'])
  })

  test("M30 - events of an operator's type and plain events", async () => {
    const payloadSchema = { type: 'object', required: ['total'] }
    const types = [{ name: 'order.paid', description: 'Paid.', channel: 'orders', payloadSchema }]
    const host = await startEventHost({ webhooks: true, types })
    const [paid, news] = [await openEndpoint(), await openEndpoint()]
    await subscribe(host, paid.url, { name: 'order.paid', arguments: {} })
    const live = await subscribe(host, news.url, { name: 'events.published', arguments: { channel: 'news' } })
    expect(live).toMatchObject({ cursor: null, truncated: false })
    await host.append('orders', '{"sum":1}', '{"total":2}')
    await until(() => paid.deliveries.length === 1)
    expect(eventOf(paid.deliveries[0] as Received)).toMatchObject({ name: 'order.paid', data: { total: 2 } })
    await until(async () => {
      await host.user.events.publish('news', { body: 'hello' })
      return news.deliveries.length > 0
    })
    expect(eventOf(news.deliveries[0] as Received)).toMatchObject({
      data: { channel: 'news', body: 'hello' },
      cursor: null,
    })
  })

  test('M30 - an endpoint that answers 410 or 413 loses that event only', async () => {
    const host = await startEventHost({ webhooks: true })
    const endpoint = await openEndpoint()
    await subscribe(host, endpoint.url)
    endpoint.status = 410
    await host.append('orders', 'one')
    await until(() => endpoint.deliveries.length === 1)
    endpoint.status = 413
    await host.append('orders', 'two')
    await until(() => endpoint.deliveries.length === 2)
    endpoint.status = 204
    await host.append('orders', 'three')
    await until(() => endpoint.deliveries.length === 3)
    expect(bodies(endpoint)).toEqual(['one', 'two', 'three'])
  })
})

/** Webhooks whose calls all fail. */
function failing(problem: Error) {
  const fail = async (): Promise<never> => {
    throw problem
  }
  return { put: fail, delete: fail }
}

function coded(code: string): Error {
  return Object.assign(new Error('text'), { code, details: {} })
}

describe('refusals', () => {
  test.each([
    ['a 4xx', answer(404), 'http_4xx'],
    ['a 5xx', answer(500), 'http_5xx'],
    ['a redirect', answer(302, { location: '/other' }), 'challenge_failed'],
    ['no JSON', answer(200, {}, 'ok'), 'challenge_failed'],
    ['no challenge', answer(200, {}, '{}'), 'challenge_failed'],
    ['another challenge', answer(200, {}, JSON.stringify({ challenge: 'x' })), 'challenge_failed'],
    [
      'a challenge of the same length',
      answer(200, {}, JSON.stringify({ challenge: 'x'.repeat(43) })),
      'challenge_failed',
    ],
    ['a closed connection', (response: { destroy(): unknown }) => void response.destroy(), 'connection_refused'],
  ])('M30 - an endpoint that answers the verification with %s is refused', async (_name, reply, reason) => {
    const host = await startEventHost({ webhooks: true })
    const receiver = await openReceiver()
    receiver.reply = reply
    const { error } = await host.ask('events/subscribe', { ...ORDERS, delivery: delivery(receiver.url) })
    expect(error).toMatchObject({ code: -32015, data: { reason } })
    await host.append('orders', 'secret')
    expect(receiver.received).toHaveLength(1)
  })

  const HTTPS = 'https://example.com/hook'

  test.each([
    ['a private address', 'https://10.0.0.1/', SECRET, -32015],
    ['an address of the local link', 'https://169.254.169.254/', SECRET, -32015],
    ['plain http', 'http://example.com/', SECRET, -32602],
    ['credentials', 'https://a:b@example.com/', SECRET, -32015],
    ['no URL', 'nothing', SECRET, -32602],
    ['no secret', HTTPS, undefined, -32602],
    ['a short secret', HTTPS, 'whsec_AAAA', -32602],
    ['a secret in another form', HTTPS, 'secret', -32602],
  ])('M30 - a subscription with %s is refused', async (_name, url, secret, code) => {
    const host = await startEventHost({ webhooks: true })
    const given = { mode: 'webhook', url, secret }
    const { error } = await host.ask('events/subscribe', { ...ORDERS, delivery: given })
    expect(error?.code).toBe(code)
    expect(JSON.stringify(error)).not.toContain('whsec_AAAA')
  })

  test('M30 - hints about queues, and other modes, are not delivered to webhooks', async () => {
    const host = await startEventHost({ webhooks: true })
    const code = async (params: object) => (await host.ask('events/subscribe', params)).error?.code
    const url = 'https://example.com/'
    const queue = { name: 'queue.message_waiting', arguments: { channel: 'jobs' }, delivery: delivery(url) }
    expect(await code(queue)).toBe(-32014)
    expect(await code({ ...ORDERS, delivery: { mode: 'mail', url, secret: SECRET } })).toBe(-32602)
    expect(await code({ ...ORDERS })).toBe(-32602)
    const listed = await host.ask('events/list', {})
    expect(listed.result?.['events']).toMatchObject([
      { delivery: ['poll', 'push', 'webhook'] },
      { delivery: ['push', 'webhook'] },
      { delivery: ['push'] },
    ])
  })

  test('M30 - webhooks need callers with names, and a server that has them', async () => {
    const endpoint = await openEndpoint()
    const params = { ...ORDERS, delivery: delivery(endpoint.url) }
    const without = await startEventHost()
    expect((await without.ask('events/subscribe', params)).error?.code).toBe(-32014)
    const webhooks = {
      put: async () => {
        throw new Error('no owner')
      },
      delete: async () => {},
    }
    const anonymous = await startEventHost({ events: { webhooks } })
    expect((await anonymous.ask('events/subscribe', params)).error?.code).toBe(-32012)
    expect((await anonymous.ask('events/unsubscribe', params)).error?.code).toBe(-32012)
    expect(endpoint.verifications).toEqual([])
  })

  test('M30 - a failure of the webhooks is an internal error, and a limit is one of the extension', async () => {
    const cases: [Error, number][] = [
      [new Error('unexpected'), -32603],
      [coded('SUBSCRIPTION_LIMIT'), -32013],
      [coded('HANDSHAKE_LIMIT'), -32013],
      [coded('WEBHOOKS_UNAVAILABLE'), -32603],
      [coded('OTHER'), -32603],
    ]
    for (const [error, code] of cases) {
      const host = await startEventHost({ policy: [{}], events: { webhooks: failing(error) } })
      const params = { ...ORDERS, delivery: delivery('https://example.com/') }
      expect((await host.ask('events/subscribe', params)).error?.code).toBe(code)
      expect((await host.ask('events/unsubscribe', params)).error?.code).toBe(code)
    }
  })
})
