import { encodeText } from '@signalbox/broker-core'
import { describe, expect, test } from 'vitest'

import type { EventHost, EventReader } from './event-host.ts'
import { ENGINES, startEventHost, storeOf } from './event-host.ts'

const ORDERS = { name: 'events_store.appended', arguments: { channel: 'orders' } }
const NEWS = { name: 'events.published', arguments: { channel: 'news' } }
const SUBSCRIPTION = { 'io.modelcontextprotocol/subscriptionId': 1 }

async function bodiesOf(reader: EventReader, count: number): Promise<(string | undefined)[]> {
  const bodies: (string | undefined)[] = []
  while (bodies.length < count) {
    const message = await reader.nextOther()
    if (message === undefined) throw new Error('the stream has ended')
    if (message.method === 'notifications/events/event') bodies.push(message.params?.data?.body)
  }
  return bodies
}

function publish(host: EventHost, body: string): Promise<unknown> {
  return host.user.events.publish('news', { body: encodeText(body) })
}

describe.each(ENGINES)('on %s', (engine) => {
  test('M29 - a stream has each new event, with the position after it', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await host.append('orders', 'before')
    const reader = await host.stream(ORDERS)
    const active = await reader.next()
    expect(active).toMatchObject({
      jsonrpc: '2.0',
      method: 'notifications/events/active',
      params: { truncated: false, _meta: SUBSCRIPTION },
    })
    await host.append('orders', 'one')
    const event = await reader.nextOther()
    expect(event).toMatchObject({
      method: 'notifications/events/event',
      params: { name: 'events_store.appended', data: { body: 'one', sequence: 2 }, _meta: SUBSCRIPTION },
    })
    await host.append('orders', 'two')
    await bodiesOf(reader, 1)
    const polled = await host.ask('events/poll', { ...ORDERS, cursor: event?.params?.['cursor'] })
    expect(polled.result).toMatchObject({ events: [{ data: { body: 'two' } }] })
  })

  test('M29 - a stream continues at its cursor after a restart, without gaps and repeats', async () => {
    const open = await storeOf(engine)
    const before = await startEventHost({ open })
    const reader = await before.stream(ORDERS)
    await reader.next()
    await before.append('orders', 'one', 'two', 'three')
    const first = await reader.nextOther()
    const cursor = first?.params?.['cursor']
    await before.close()
    const after = await startEventHost({ open })
    const again = await after.stream({ ...ORDERS, cursor })
    expect(await again.next()).toMatchObject({ params: { cursor, truncated: false } })
    await after.append('orders', 'four')
    expect(await bodiesOf(again, 3)).toEqual(['two', 'three', 'four'])
  })

  test('M29 - a stream of plain events is live, and has no cursor', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await publish(host, 'lost')
    const reader = await host.stream({ ...NEWS, cursor: null })
    expect(await reader.next()).toMatchObject({ params: { cursor: null, truncated: false } })
    await publish(host, 'one')
    expect(await reader.nextOther()).toMatchObject({ params: { data: { channel: 'news', body: 'one' }, cursor: null } })
  })

  test('M29 - a queue hints at its messages, and again at new ones', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await host.user.queues.send('jobs', { body: 'one' })
    const reader = await host.stream({ name: 'queue.message_waiting', arguments: { channel: 'jobs' } })
    expect(await reader.next()).toMatchObject({ method: 'notifications/events/active', params: { cursor: null } })
    const first = await reader.nextOther()
    expect(first?.params?.data).toEqual({ channel: 'jobs', waiting: 1 })
    await host.user.queues.send('jobs', { body: 'two' })
    const second = await reader.nextOther()
    expect(second?.params?.data).toEqual({ channel: 'jobs', waiting: 2 })
    expect(second?.params?.['eventId']).not.toBe(first?.params?.['eventId'])
  })
})

describe('streams', () => {
  test('M29 - heartbeats are messages with the position', async () => {
    const host = await startEventHost({ events: { heartbeatMs: 20 } })
    await host.append('orders', 'one')
    const reader = await host.stream(ORDERS)
    const { params: active } = (await reader.next()) ?? {}
    expect(await reader.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/events/heartbeat',
      params: { cursor: active?.['cursor'], _meta: SUBSCRIPTION },
    })
  })

  test('M29 - a stream whose cursor retention has passed begins truncated', async () => {
    const host = await startEventHost()
    await host.system.channels.create('events_store', 'orders', { maxBytes: 40_000 })
    await host.append('orders', 'one')
    const { result } = await host.ask('events/poll', ORDERS)
    const large = 'x'.repeat(9_000)
    for (let n = 0; n < 12; n++) await host.append('orders', large)
    await expect
      .poll(async () => (await host.system.eventsStore.read('orders', { maxMessages: 1 }))[0]?.sequence)
      .toBeGreaterThan(2)
    const reader = await host.stream({ ...ORDERS, cursor: result?.['cursor'] })
    expect(await reader.next()).toMatchObject({ params: { truncated: true } })
    expect(await bodiesOf(reader, 1)).toEqual([large])
  })

  test('M29 - a channel that is created again is reported as a gap', async () => {
    const host = await startEventHost()
    await host.append('orders', 'one', 'two')
    const reader = await host.stream(ORDERS)
    await reader.next()
    await host.system.channels.delete('events_store', 'orders')
    await host.append('orders', 'new')
    expect(await reader.nextOther()).toMatchObject({
      method: 'notifications/events/active',
      params: { truncated: true },
    })
    expect(await bodiesOf(reader, 1)).toEqual(['new'])
  })

  test.each([
    ['events_store.appended', 'orders'],
    ['events.published', 'orders'],
    ['queue.message_waiting', 'orders'],
  ])('M29 - a new policy ends a stream of %s before the next event', async (name, channel) => {
    const allowed = { clients: ['alice', 'publisher'] }
    const host = await startEventHost({ policy: [allowed] })
    const reader = await host.stream({ name, arguments: { channel } })
    await reader.next()
    host.setPolicy({ clients: ['publisher'] })
    await host.user.eventsStore.publish(channel, { body: 'secret' })
    await host.user.events.publish(channel, { body: 'secret' })
    await host.user.queues.send(channel, { body: 'secret' })
    expect(await reader.nextOther()).toMatchObject({
      method: 'notifications/events/terminated',
      params: { error: { code: -32012 }, _meta: SUBSCRIPTION },
    })
    expect(await reader.next()).toMatchObject({ id: 1, result: { resultType: 'complete', _meta: SUBSCRIPTION } })
    expect(await reader.next()).toBeUndefined()
    expect(host.failures).toEqual([])
  })

  test('M29 - a shutdown completes the streams', async () => {
    const host = await startEventHost()
    const reader = await host.stream(ORDERS)
    await reader.next()
    const closed = host.close()
    expect(await reader.nextOther()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    expect(await reader.next()).toBeUndefined()
    await closed
  })

  test('M29 - streams count against the limit of streams until their clients leave', async () => {
    const host = await startEventHost({ connector: { maxStreams: 1 } })
    const leave = new AbortController()
    const reader = await host.stream(ORDERS, { signal: leave.signal })
    await reader.next()
    expect((await host.request('events/stream', ORDERS)).status).toBe(503)
    leave.abort()
    await expect
      .poll(async () => {
        const again = new AbortController()
        const { status } = await host.request('events/stream', ORDERS, { signal: again.signal })
        again.abort()
        return status
      })
      .toBe(200)
    expect(host.failures).toEqual([])
  })

  test('M29 - a client that does not read keeps at most the buffer of one stream in memory', async () => {
    const host = await startEventHost()
    const reader = await host.stream(ORDERS)
    await reader.next()
    const body = 'x'.repeat(16_000)
    for (let n = 0; n < 300; n++) await host.append('orders', body)
    expect(await bodiesOf(reader, 300)).toHaveLength(300)
  }, 30_000)

  test('M29 - a stream needs a client that accepts event streams, and valid params', async () => {
    const host = await startEventHost({ policy: [{ clients: ['alice'], channels: ['orders'] }] })
    const json = { headers: { Accept: 'application/json' } }
    expect((await host.request('events/stream', ORDERS, json)).status).toBe(406)
    const error = async (params: object) => (await host.ask('events/stream', params)).error?.code
    expect(await error({ ...ORDERS, cursor: 'x' })).toBe(-32602)
    expect(await error({ ...ORDERS, arguments: { channel: 'other' } })).toBe(-32012)
    expect(await error({ name: 'x' })).toBe(-32011)
  })
})
