import { describe, expect, test } from 'vitest'

import { ENGINES, startEventHost, storeOf } from './event-host.ts'
import type { EventHost } from './event-host.ts'

const ORDERS = { name: 'events_store.appended', arguments: { channel: 'orders' } }

interface Polled {
  readonly events: readonly {
    readonly eventId: string
    readonly name: string
    readonly timestamp: string
    readonly cursor: string
    readonly data: { readonly body?: string; readonly sequence?: number; readonly [member: string]: unknown }
  }[]
  readonly cursor: string
  readonly truncated: boolean
  readonly hasMore: boolean
  readonly nextPollMs: number
}

async function poll(host: EventHost, params: object): Promise<Polled> {
  const { result, error } = await host.ask('events/poll', { ...ORDERS, ...params })
  expect(error).toBeUndefined()
  return result as unknown as Polled
}

interface Listed {
  readonly events: readonly { readonly name: string; readonly delivery: readonly string[] }[]
}

/** Returns the event types of the caller, with their modes. */
async function namesOf(host: EventHost): Promise<unknown[]> {
  const { result } = await host.ask('events/list', {})
  const { events } = result as unknown as Listed
  return events.map(({ name, delivery }) => [name, delivery])
}

function bodies({ events }: Polled): (string | undefined)[] {
  return events.map(({ data }) => data.body)
}

const TYPE = {
  name: 'order.paid',
  description: 'An order was paid.',
  channel: 'orders',
  payloadSchema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
}

describe.each(ENGINES)('on %s', (engine) => {
  test('M29 - a poll without a cursor returns a position, and later polls the events after it', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await host.append('orders', 'before')
    const start = await poll(host, {})
    expect(start).toMatchObject({ events: [], truncated: false, hasMore: false, nextPollMs: 5_000 })
    await host.append('orders', 'one', 'two', 'three')
    const first = await poll(host, { cursor: start.cursor, maxEvents: 2 })
    expect([bodies(first), first.hasMore, first.nextPollMs]).toEqual([['one', 'two'], true, 0])
    const [event] = first.events
    expect(event).toMatchObject({ name: 'events_store.appended', data: { channel: 'orders', sequence: 2, tags: {} } })
    expect(Date.parse(event?.timestamp ?? '')).toBeGreaterThan(Date.now() - 60_000)
    const rest = await poll(host, { cursor: first.cursor })
    expect([bodies(rest), rest.hasMore, rest.truncated]).toEqual([['three'], false, false])
    // The cursor of each event continues after it, and an event has the same id in each poll.
    const again = await poll(host, { cursor: event?.cursor })
    expect(bodies(again)).toEqual(['two', 'three'])
    expect(again.events[0]?.eventId).toBe(first.events[1]?.eventId)
  })

  test('M29 - a cursor continues after a restart, and on another node', async () => {
    const open = await storeOf(engine)
    const before = await startEventHost({ open })
    const { cursor } = await poll(before, {})
    await before.append('orders', 'one')
    await before.close()
    const after = await startEventHost({ open })
    await after.append('orders', 'two')
    const polled = await poll(after, { cursor })
    expect([bodies(polled), polled.truncated]).toEqual([['one', 'two'], false])
  })

  test('M29 - a poll is truncated if retention has removed entries after its cursor', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await host.system.channels.create('events_store', 'orders', { maxBytes: 40_000 })
    await host.append('orders', 'one')
    const start = await poll(host, {})
    await host.append('orders', 'two')
    const { cursor } = start
    expect((await poll(host, { cursor })).truncated).toBe(false)
    const large = 'x'.repeat(9_000)
    await expect
      .poll(
        async () => {
          await host.append('orders', large)
          return (await poll(host, { cursor })).truncated
        },
        { timeout: 15_000 },
      )
      .toBe(true)
    const polled = await poll(host, { cursor })
    expect(bodies(polled).every((body) => body === large)).toBe(true)
    expect((await poll(host, { cursor: polled.cursor })).truncated).toBe(false)
  })

  test('M29 - a poll is truncated if the channel was deleted and created again', async () => {
    const host = await startEventHost({ open: await storeOf(engine) })
    await host.append('orders', 'one', 'two')
    const { cursor } = await poll(host, {})
    await host.system.channels.delete('events_store', 'orders')
    await host.append('orders', 'new one')
    const short = await poll(host, { cursor })
    expect([bodies(short), short.truncated]).toEqual([['new one'], true])
    // The same sequence as that of the cursor belongs to another entry.
    await host.append('orders', 'new two', 'new three')
    const long = await poll(host, { cursor })
    expect([bodies(long), long.truncated]).toEqual([['new one', 'new two', 'new three'], true])
  })
})

describe('polls', () => {
  test('M29 - gaps of a compacted store are not truncated', async () => {
    const host = await startEventHost()
    await host.system.channels.create('events_store', 'orders', { compacted: true })
    const put = (key: string, body: string) => host.system.eventsStore.publish('orders', { key, body })
    await put('a', '1')
    const { cursor } = await poll(host, {})
    await put('b', '1')
    await put('b', '2')
    await put('c', '1')
    await host.system.eventsStore.publish('orders', { key: 'c', body: '', tombstone: true })
    const polled = await poll(host, { cursor })
    expect(polled.truncated).toBe(false)
    expect(bodies(polled).at(-1)).toBe('2')
  })

  test('M29 - maxAgeMs passes over older events and is no truncation', async () => {
    let ago = 120_000
    const host = await startEventHost({ open: await storeOf('embedded', { now: () => Date.now() - ago }) })
    const { cursor } = await poll(host, {})
    await host.append('orders', 'old')
    ago = 0
    await host.append('orders', 'young')
    const polled = await poll(host, { cursor, maxAgeMs: 60_000 })
    expect([bodies(polled), polled.truncated]).toEqual([['young'], false])
    const none = await poll(host, { cursor, maxAgeMs: 0 })
    expect(none.truncated).toBe(false)
  })

  test('M29 - large and binary bodies', async () => {
    const host = await startEventHost()
    const { cursor } = await poll(host, {})
    await host.append('orders', 'ä'.repeat(20_000))
    await host.system.eventsStore.publish('orders', { body: new Uint8Array([0xff, 0]) })
    const [large, binary] = (await poll(host, { cursor })).events
    expect(large?.data).toEqual({ channel: 'orders', sequence: 1, preview: 'ä'.repeat(512), bytes: 40_000 })
    expect(binary?.data).toMatchObject({ body: '/wA=', body_encoding: 'base64' })
  })

  test("M29 - an operator's type has the bodies that match its schema", async () => {
    const host = await startEventHost({ types: [TYPE] })
    const { result } = await host.ask('events/poll', { name: 'order.paid' })
    const cursor = result?.['cursor']
    await host.append('orders', '{"total":1}', 'no JSON', '{"sum":1}', `{"total":2,"note":"${'x'.repeat(200_000)}"}`)
    await host.append('orders', '{"total":3}')
    const polled = (await host.ask('events/poll', { name: 'order.paid', cursor })).result as unknown as Polled
    expect(polled.events.map(({ name, data }) => [name, data])).toEqual([
      ['order.paid', { total: 1 }],
      ['order.paid', { total: 3 }],
    ])
    expect(polled.hasMore).toBe(false)
    const refused = await host.ask('events/poll', { name: 'order.paid', arguments: { channel: 'orders' } })
    expect(refused.error).toMatchObject({ code: -32602 })
  })

  test('M29 - events/list has the types and modes of the caller', async () => {
    const open = await startEventHost({ types: [TYPE] })
    expect(await namesOf(open)).toEqual([
      ['events_store.appended', ['poll', 'push']],
      ['events.published', ['push']],
      ['queue.message_waiting', ['push']],
      ['order.paid', ['poll', 'push']],
    ])
    const list = await open.ask('events/list', {})
    expect(list.result).toMatchObject({ resultType: 'complete', cacheScope: 'public', ttlMs: 300_000 })
    expect((await open.ask('events/list', { cursor: 'x' })).error?.code).toBe(-32602)
    const reads = { clients: ['alice'], actions: ['read'], channels: ['orders'] }
    const governed = await startEventHost({ types: [TYPE], policy: [reads] })
    expect(await namesOf(governed)).toEqual([
      ['events_store.appended', ['poll']],
      ['order.paid', ['poll']],
    ])
    governed.setPolicy({ ...reads, channels: ['other'] })
    expect(await namesOf(governed)).toEqual([['events_store.appended', ['poll']]])
    expect((await governed.ask('events/poll', ORDERS)).error).toMatchObject({ code: -32012 })
    const other = await governed.ask('events/poll', { ...ORDERS, arguments: { channel: 'other' } })
    expect(other.result).toMatchObject({ events: [] })
    governed.setPolicy({ clients: ['bob'] })
    expect(await namesOf(governed)).toEqual([])
  })

  test('M29 - without the option, the methods and the capabilities are absent', async () => {
    const { startHost, rpc } = await import('./mcp-host.ts')
    const { ask } = await import('./stateless-client.ts')
    const host = await startHost()
    expect((await ask(host, 'events/list')).status).toBe(404)
    const off = rpc(await ask(host, 'server/discover')).result
    expect(off?.['capabilities']).toEqual({ tools: {} })
    const on = await (await startEventHost()).ask('server/discover', {})
    expect(on.result?.['capabilities']).toEqual({
      tools: {},
      events: {},
      extensions: { 'io.modelcontextprotocol/events': {} },
    })
  })
})

describe('errors', () => {
  const DECLARED = {
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/events': {} } },
  }

  test('M29 - clients that declare SEP-3415 get its error codes', async () => {
    const host = await startEventHost()
    const unknown = { name: 'no.such' }
    expect((await host.ask('events/poll', unknown)).error?.code).toBe(-32011)
    expect((await host.ask('events/poll', unknown, { meta: DECLARED })).error?.code).toBe(-32023)
    const live = { name: 'events.published', arguments: { channel: 'news' } }
    expect((await host.ask('events/poll', live)).error?.code).toBe(-32014)
    expect((await host.ask('events/poll', live, { meta: DECLARED })).error?.code).toBe(-32026)
    const forced = await startEventHost({ events: { codes: 'sketch' } })
    expect((await forced.ask('events/poll', unknown, { meta: DECLARED })).error?.code).toBe(-32011)
  })

  const LONG = 'x'.repeat(300)

  test.each([
    ['no name', { name: undefined }],
    ['an empty name', { name: '' }],
    ['a name that is no text', { name: 7 }],
    ['no channel', { arguments: {} }],
    ['another argument', { arguments: { channel: 'orders', more: 1 } }],
    ['a wildcard', { arguments: { channel: 'orders.>' } }],
    ['a reserved channel', { arguments: { channel: '_AGENTS_.tasks' } }],
    ['arguments in an array', { arguments: ['orders'] }],
    ['a cursor that is no cursor', { cursor: 'x' }],
    ['a long cursor', { cursor: LONG }],
    ['a cursor in another form', { cursor: Buffer.from('1.5').toString('base64url') }],
    ['a cursor with a sequence of 0', { cursor: Buffer.from('1.0..x').toString('base64url') }],
    ['a cursor that is no text', { cursor: 7 }],
    ['a negative age', { maxAgeMs: -1 }],
    ['no events', { maxEvents: 0 }],
    ['a fraction of an event', { maxEvents: 1.5 }],
  ])('M29 - a poll with %s is -32602', async (_name, params) => {
    const host = await startEventHost()
    const { error, status } = await host.ask('events/poll', { ...ORDERS, ...params })
    expect([status, error?.code]).toEqual([200, -32602])
    expect(host.failures).toEqual([])
  })

  test('M29 - a cursor of another channel is -32602', async () => {
    const host = await startEventHost()
    const { cursor } = await poll(host, {})
    const other = { name: 'events_store.appended', arguments: { channel: 'other' }, cursor }
    expect((await host.ask('events/poll', other)).error).toMatchObject({ code: -32602 })
  })
})
