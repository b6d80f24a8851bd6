import { setTimeout as pause } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { CHANNEL_SORTS } from '../src/channels/search-channels.ts'
import type { ChannelSettingsPort } from '../src/ports.ts'
import type { Answer } from './management-server.ts'
import { manage, text } from './management-server.ts'

test('MGMT-16 - pages through channels sorted by depth', async () => {
  const { get, broker } = await manage()
  const shop = broker.as({ clientId: 'shop' })
  for (const [channel, count] of Object.entries({ a: 1, b: 3, c: 2, d: 2 })) {
    for (let i = 0; i < count; i++) await shop.queues.send(channel, { body: text('x') })
  }
  const first = await get('/api/channels?sort=depth&order=desc&limit=2')
  expect(first.data).toMatchObject({ total: 4, complete: true })
  expect(first.data.items.map(({ name, depth }) => [name, depth])).toEqual([
    ['b', 3],
    ['d', 2],
  ])
  const next = await get(`/api/channels?sort=depth&order=desc&limit=2&cursor=${first.data.next_cursor}`)
  expect(next.data.items.map(({ name }) => name)).toEqual(['c', 'a'])
  expect(next.data.next_cursor).toBe(null)
  const other = await get(`/api/channels?sort=name&cursor=${first.data.next_cursor}`)
  expect([other.error, other.data.code]).toEqual([true, 'PARAMETER_INVALID'])
  for (const cursor of ['x', Buffer.from('["depth","desc",1,"queues",2]').toString('base64url')]) {
    const refused = await get(`/api/channels?sort=depth&order=desc&cursor=${cursor}`)
    expect(refused.data.code).toBe('PARAMETER_INVALID')
  }
})

test('MGMT-16 - lists all channel types by name, with the values of their type', async () => {
  const { get, broker } = await manage()
  const shop = broker.as({ clientId: 'shop' })
  await shop.queues.send('m', { body: text('x'), delayMs: 60_000 })
  await shop.eventsStore.publish('l', { body: text('x') })
  await shop.events.publish('m', { body: text('x') })
  const { data } = await get('/api/channels')
  expect(data.items.map(({ name, type }) => [name, type])).toEqual([
    ['l', 'events_store'],
    ['m', 'events'],
    ['m', 'queues'],
  ])
  expect(data.items[0]).toMatchObject({ depth: 1, in_flight: null, delayed: null, dead_lettered: null })
  expect(data.items[1]).toMatchObject({ depth: null, bytes: null, messages_in: 1 })
  expect(data.items[2]).toMatchObject({ delayed: 1, in_flight: 0, dead_lettered: 0 })
  expect((await get('/api/channels?type=events_store')).data.total).toBe(1)
  expect((await get('/api/channels?type=events_store&sort=last_activity')).data.total).toBe(1)
})

test('MGMT-16 - searches by a part of the name or by a glob', async () => {
  const { get, act } = await manage()
  for (const channel of ['shop.Orders', 'shop.invoices', 'orders-old']) {
    await act('create_channel', { channel, type: 'queues' })
  }
  const names = async (search: string) =>
    (await get(`/api/channels?search=${search}`)).data.items.map(({ name }) => name)
  expect(await names('ORDERS')).toEqual(['orders-old', 'shop.Orders'])
  expect(await names('shop.*')).toEqual(['shop.Orders', 'shop.invoices'])
  expect(await names('_AGENTS_')).toEqual([])
})

/**
 * The duration of a request for a page of 100 channels, and the longest block of the event loop, in ms. Time in which
 * other processes had the processors does not count.
 */
async function measured(ask: () => Promise<Answer>): Promise<{ took: number; blocked: number; complete: boolean }> {
  let blocked = 0
  let last = performance.now()
  let used = process.cpuUsage()
  const look = (): void => {
    const spent = cpuMs(used)
    used = process.cpuUsage()
    const now = performance.now()
    blocked = Math.max(blocked, Math.min(now - last, spent))
    last = now
  }
  const watch = setInterval(look, 1)
  const [loop, cpu] = [performance.eventLoopUtilization(), process.cpuUsage()]
  const { data } = await ask()
  const { idle, active } = performance.eventLoopUtilization(loop)
  const took = idle + Math.min(active, cpuMs(cpu))
  look()
  clearInterval(watch)
  // With 100 channels on the page.
  const complete = data.complete && data.items.length === 100
  return { took, blocked, complete }
}

/** The time that the threads of this process had the processors, in ms. */
function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

test('MGMT-16 - 100,000 channels in under a second, without a long pause of the event loop', async () => {
  const COUNT = 100_000
  const { get, engine, system } = await manage({ maxChannels: COUNT + 10 })
  await system.channels.list()
  for (let i = 0; i < COUNT; i++) await engine.channels.create('events', `channel.${(i * 7_919) % COUNT}`)
  await get('/api/channels?limit=1')
  for (const query of ['', '?sort=messages_in&order=desc', '?search=99&sort=last_activity']) {
    // Other tests share the processors, so one good try of several counts. A list is not complete while the states are
    // read for the first time.
    let tries = 0
    let best = await measured(() => get(`/api/channels${query}`))
    while ((best.took >= 1_000 || best.blocked >= 50 || !best.complete) && tries++ < 10) {
      await pause(200)
      best = await measured(() => get(`/api/channels${query}`))
    }
    const { took, blocked, complete } = best
    expect([query, took < 1_000, blocked < 50, complete]).toEqual([query, true, true, true])
  }
}, 60_000)

test('MGMT-16 - while a slow engine reads the states, a list shows the known ones', async () => {
  const { get, act, engine } = await manage()
  for (const channel of ['a', 'b']) await act('create_channel', { channel, type: 'queues' })
  const states = engine.channels.states.bind(engine.channels)
  const { promise: slow, resolve: release } = Promise.withResolvers<void>()
  engine.channels.states = async (names) => {
    await slow
    return states(names)
  }
  const list = async () => {
    const { items, complete } = (await get('/api/channels?sort=depth')).data
    return [items.length, complete]
  }
  expect(await list()).toEqual([0, false])
  release()
  await expect.poll(list).toEqual([2, true])
})

test('MGMT-21 - lists the clients of a channel on this node until they leave', async () => {
  const { get, broker } = await manage()
  const { events, commands, queues } = broker.as({ clientId: 'billing' })
  const clients = async (type: string, channel: string) =>
    (await get(`/api/subscribers?type=${type}&channel=${channel}`)).data.items
  const client = { client_id: 'billing', kind: 'subscriber', pattern: null, group: null, count: 1 }
  const open = [
    await events.subscribe('orders.eu', {}, () => {}),
    await events.subscribe('orders.eu', {}, () => {}),
    await events.subscribe('orders.*', { group: 'g' }, () => {}),
    await commands.subscribe('stop', {}, () => ({ body: 'ok' })),
  ]
  expect(await clients('events', 'orders.eu')).toEqual([
    { ...client, group: 'g', pattern: 'orders.*' },
    { ...client, count: 2 },
  ])
  expect(await clients('events', 'orders.us')).toEqual([{ ...client, group: 'g', pattern: 'orders.*' }])
  expect(await clients('commands', 'stop')).toEqual([{ ...client, kind: 'responder' }])
  const left = new AbortController()
  const waiting = queues.receive('orders', { waitMs: 60_000, signal: left.signal })
  await expect.poll(() => clients('queues', 'orders')).toEqual([{ ...client, kind: 'receiver' }])
  left.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await Promise.all(open.map((subscription) => subscription.close()))
  for (const [type, channel] of [
    ['queues', 'orders'],
    ['events', 'orders.eu'],
    ['commands', 'stop'],
  ] as const) {
    expect(await clients(type, channel)).toEqual([])
  }
})

test('MGMT-16 - finds one channel by its whole name, whatever the order', async () => {
  const { get, act } = await manage()
  for (const channel of ['orders', 'Orders', 'orders.eu']) await act('create_channel', { channel, type: 'queues' })
  await act('create_channel', { channel: 'orders', type: 'events' })
  for (const sort of ['name', 'depth']) {
    const { items, total } = (await get(`/api/channels?name=orders&sort=${sort}`)).data
    expect(items.map(({ name, type }) => [type, name])).toEqual([
      ['events', 'orders'],
      ['queues', 'orders'],
    ])
    expect(total).toBe(2)
  }
  expect((await get('/api/channels?name=orders&type=queues')).data.total).toBe(1)
  expect((await get('/api/channels?name=order*')).data.total).toBe(0)
})

test('MGMT-16 - every order has each channel once, in pages of one', async () => {
  const { get, broker } = await manage()
  const shop = broker.as({ clientId: 'shop' })
  await shop.queues.send('same', { body: text('xx') })
  await shop.queues.send('other', { body: text('x'), delayMs: 60_000 })
  await shop.eventsStore.publish('same', { body: text('x') })
  await shop.events.publish('same', { body: text('x') })
  const expected = ['events same', 'events_store same', 'queues other', 'queues same']
  for (const query of CHANNEL_SORTS.flatMap((sort) => [`sort=${sort}&order=asc`, `sort=${sort}&order=desc`])) {
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { data }: Answer = await get(`/api/channels?${query}&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
      for (const { type, name } of data.items) seen.push(`${type} ${name}`)
      cursor = data.next_cursor
    }
    expect([query, seen.toSorted()]).toEqual([query, expected])
  }
})

test('channel settings - an entry that the engine cannot apply is refused and not written, also in a dry run', async () => {
  const written: unknown[] = []
  const channelSettings: ChannelSettingsPort = {
    entries: () => [],
    fromFile: [],
    set: async (given, changedBy) => {
      written.push(given)
      return { given, revision: 1, changedBy, changedAt: 0 }
    },
    remove: async () => false,
  }
  const { act, broker } = await manage({ services: { channelSettings } })
  await broker.as({ clientId: 'shop' }).eventsStore.publish('triggers', { body: text('x') })
  const entry = { type: 'events_store', match: 'triggers', retention: { compact: true } }
  for (const given of [entry, { ...entry, dry_run: true }]) {
    const { status, error, error_string: message, data } = await act('set_channel_settings', given)
    expect([status, error, data.code]).toEqual([200, true, 'SETTING_UNSUPPORTED'])
    expect(message).toMatch(/retention\.compact.*"triggers" has entries/)
  }
  expect(written).toEqual([])
  expect(await act('set_channel_settings', { ...entry, match: 'others' })).toMatchObject({ error: false })
  expect(written).toHaveLength(1)
})
