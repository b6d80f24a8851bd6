import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { BoundedTable } from '../src/statistics/statistics.ts'
import type { Item } from './management-server.ts'
import { manage, text } from './management-server.ts'

test('MGMT-12 - channels, queues and events stores: messages, bytes, errors, activity and contents', async () => {
  const { get, broker } = await manage()
  const { queues, eventsStore, commands, events } = broker.as({ clientId: 'shop' })
  await queues.sendBatch('q', [{ body: text('12345') }, { body: text('1'), delayMs: 60_000 }, { body: text('123') }])
  await queues.receive('q')
  await queues.receive('q', { maxMessages: 0 }).catch(() => {})
  await eventsStore.publish('s', { body: text('12') })
  await eventsStore.publish('s', { body: text('12') })
  await eventsStore.read('s', { maxMessages: 1 })
  await events.publish('e', { body: text('') })
  await commands.send('c', { body: text('x') }, { timeoutMs: 1 }).catch(() => {})
  const item = { is_active: true, subscribers: 0, errors: 0, last_activity: expect.stringMatching(/Z$/) }
  const queue = {
    ...item,
    name: 'q',
    type: 'queues',
    messages_in: 3,
    messages_out: 1,
    bytes_in: 9,
    bytes_out: 5,
    errors: 1,
  }
  expect(await get('/v1/stats/queues')).toMatchObject({
    error: false,
    data: {
      items: [{ ...queue, waiting: 1, delayed: 1, in_flight: 1, bytes: 9, dead_lettered: 0, expired: 0 }],
      total: 1,
      next_cursor: null,
    },
  })
  const store = {
    ...item,
    name: 's',
    messages_in: 2,
    messages_out: 1,
    bytes_in: 4,
    first_sequence: 1,
    last_sequence: 2,
    entries: 2,
  }
  expect(await get('/api/stats/events_stores')).toMatchObject({ data: { items: [store] } })
  const all = await get('/v1/stats/channels')
  expect(all.data.items.map(({ type, name, errors }: Record<string, unknown>) => [type, name, errors])).toEqual([
    ['commands', 'c', 1],
    ['events', 'e', 0],
    ['events_store', 's', 0],
    ['queues', 'q', 1],
  ])
  expect(await get('/v1/stats/channels?type=events')).toMatchObject({ data: { total: 1, items: [{ name: 'e' }] } })
  expect(await get('/v1/stats/clients')).toMatchObject({
    data: {
      items: [{ client_id: 'shop', messages_in: 7, messages_out: 2, bytes_in: 14, bytes_out: 7, errors: 2 }],
      forgotten: 0,
    },
  })
  expect(await get('/api/snapshot')).toMatchObject({
    data: {
      nodes: [{ node: 'n1', engine: 'embedded', ready: true }],
      totals: { messages_in: 7, messages_out: 2, bytes_in: 14, bytes_out: 7, errors: 2 },
      queues: { waiting: 1, delayed: 1, in_flight: 1 },
      top_channels: [{ name: 'q' }, { name: 's' }, {}, {}],
      deepest_queues: [{ name: 'q', waiting: 1 }],
      agents: { registered: 0, in_flight: 0 },
      monitors: 0,
      audit_dropped: 0,
    },
  })
})

test('MGMT-12 - statistics are filtered, and pages stay correct while the list changes', async () => {
  const { get, broker } = await manage()
  const { channels } = broker.as({ clientId: 'shop' })
  for (let n = 0; n < 25; n++) await channels.create('queues', `orders.${String(n).padStart(2, '0')}`)
  await channels.create('queues', 'other')
  const names: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 3; pages++) {
    const { data } = await get(`/v1/stats/queues?channel=orders.&limit=10${cursor}`)
    names.push(...data.items.map(({ name }) => name))
    if (pages === 0) await channels.delete('queues', 'orders.03')
    cursor = `&cursor=${data.next_cursor}`
    expect(data.total).toBe(pages === 0 ? 25 : 24)
    expect(data.next_cursor === null).toBe(pages === 2)
  }
  expect(names).toEqual(Array.from({ length: 25 }, (_, n) => `orders.${String(n).padStart(2, '0')}`))
  const last = Buffer.from('queues zzz').toString('base64url')
  expect(await get(`/v1/stats/queues?cursor=${last}`)).toMatchObject({
    error: false,
    data: { items: [], next_cursor: null, total: 25 },
  })
  expect(await get('/v1/stats/queues?channel=*.1?')).toMatchObject({ data: { total: 10 } })
  for (const bad of ['%20', 'a=', '*'])
    expect(await get(`/v1/stats/queues?cursor=${bad}`)).toMatchObject({ data: { code: 'PARAMETER_INVALID' } })
})

test('M8 - statistics never show an internal channel, for any query', async () => {
  const { get, api } = await manage()
  api.audit.record({ client: 'a', action: 'x', outcome: 'success' })
  await expect.poll(async () => (await get('/api/audit')).data.items.length).toBe(1)
  for (const path of ['/v1/stats/channels', '/v1/stats/events_stores', '/v1/stats/channels?channel=_AGENTS_.'])
    expect(await get(path)).toMatchObject({ data: { total: 0 } })
  expect(await get('/v1/stats/clients')).toMatchObject({ data: { total: 0 } })
  expect(await get('/api/snapshot')).toMatchObject({ data: { totals: { messages_in: 0 }, top_channels: [] } })
})

test('MGMT-13 - the tables of clients and errors are bounded', async () => {
  const { get, broker } = await manage({ statistics: { maxClients: 10, maxChannels: 10 } })
  const busy = broker.as({ clientId: 'busy' })
  for (let n = 0; n < 100; n++) {
    await broker
      .as({ clientId: `client-${n}` })
      .queues.receive(`q${n}`, { maxMessages: 0 })
      .catch(() => {})
    await busy.events.publish('e', { body: text('x') })
  }
  const { data } = await get('/v1/stats/clients')
  expect(data).toMatchObject({ total: 10, forgotten: 91 })
  expect(data.items[0]).toMatchObject({ client_id: 'busy', messages_in: 100 })
})

test('MGMT-13 - a bounded table holds no more than its limit, and keeps entries that are in use', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 8 }),
      fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 200 }),
      (limit, keys) => {
        const table = new BoundedTable(limit, () => ({ uses: 0 }))
        for (const key of keys) {
          const value = table.of(`k${key}`)
          value.uses++
          expect(table.size).toBeLessThanOrEqual(limit)
          expect(table.of(`k${key}`)).toBe(value)
        }
        expect(new Set(table.list().map(([key]) => key)).size).toBe(table.size)
      },
    ),
    { seed: 20_261 },
  )
})

test('management - the configuration is shown as the server gives it', async () => {
  const { get } = await manage({ config: () => ({ http: { port: 1 } }) })
  expect(await get('/api/config')).toMatchObject({ error: false, data: { http: { port: 1 } } })
})

test('MGMT-20 - a broker of one node lists itself alone', async () => {
  const { get } = await manage()
  expect((await get('/api/nodes')).data).toEqual({
    items: [
      {
        id: null,
        node: 'n1',
        version: '1.2.3',
        answers: true,
        engine: 'embedded',
        ready: true,
        healthy: true,
        uptime_seconds: 1,
        last_seen: expect.stringMatching(/Z$/),
      },
    ],
  })
})

test('MGMT-12 - the snapshot has the age of the oldest waiting message of the deepest queues', async () => {
  let time = Date.parse('2026-07-01T10:00:00.000Z')
  const { get, broker } = await manage({ now: () => time })
  const { queues } = broker.as({ clientId: 'shop' })
  await queues.send('old', { body: text('x') })
  time += 60_000
  await queues.send('old', { body: text('x') })
  await queues.send('new', { body: text('x') })
  const { deepest_queues: deepest } = (await get<{ readonly deepest_queues: readonly Item[] }>('/api/snapshot')).data
  expect(deepest.map(({ name, oldest_waiting }) => [name, oldest_waiting])).toEqual([
    ['old', '2026-07-01T10:00:00.000Z'],
    ['new', '2026-07-01T10:01:00.000Z'],
  ])
})
