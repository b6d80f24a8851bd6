import { expect, test } from 'vitest'
import { random } from '@signalbox/testkit/random'
import { until } from '@signalbox/testkit/until'

import { event, openCe } from './ce-server.ts'
import type { CeServer } from './ce-server.ts'
import type { SseClient } from '@signalbox/testkit/sse-client'

async function store({ user }: CeServer, count: number, first = 1): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, i) => user.eventsStore.publish('s', { body: Buffer.from(`${first + i}`) })),
  )
}

async function take(stream: SseClient, count: number): Promise<number[]> {
  const sequences: number[] = []
  while (sequences.length < count) {
    const { id, data } = await stream.next()
    expect(JSON.parse(data).data).toBe(Number(id))
    sequences.push(Number(id))
  }
  return sequences
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, i) => from + i)
}

test('CE-14 - events store: a subscription starts at the requested position, and event ids are sequences', async () => {
  const server = await openCe()
  const { subscribe, user } = server
  const start = (type: number, value?: string | number) =>
    subscribe(
      `events-store?channel=s&events_store_type=${type}${value === undefined ? '' : `&events_store_value=${encodeURIComponent(value)}`}`,
    )
  await store(server, 5)
  await new Promise((resolve) => setTimeout(resolve, 2100))
  await store(server, 5, 6)
  const [sixth] = await user.eventsStore.read('s', { fromSequence: 6, maxMessages: 1 })
  const at = new Date(sixth!.timestamp).toISOString()
  const streams: [SseClient, number][] = [
    // First, because the last two seconds must contain only the later events; on a busy machine one second is too short.
    [await start(6, 2), 6],
    [await start(1), 11],
    [await subscribe('events-store?channel=s'), 11],
    [await start(2), 1],
    [await start(3), 10],
    [await start(4, 4), 4],
    [await start(4, 100), 100],
    [await start(5, at), 6],
    [await start(5, at.replace('Z', '+00:00')), 6],
    [await start(5, '2001-01-01T00:00:00Z'), 1],
    [await start(6, 3600), 1],
  ]
  await store(server, 2, 11)
  for (const [stream, first] of streams) {
    expect(await take(stream, Math.max(13 - first, 0)), `${first}`).toEqual(range(first, 12))
    expect(stream.waiting).toEqual([])
  }
})

test('CE-14 - events store: Last-Event-ID continues after that event, with any query', async () => {
  const server = await openCe()
  await store(server, 5)
  for (const [query, id, expected] of [
    ['', '3', [4, 5]],
    ['&events_store_type=2', '3', [4, 5]],
    ['&events_store_type=4&events_store_value=1', '4', [5]],
    ['', '0', [1, 2, 3, 4, 5]],
  ] as const) {
    const stream = await server.subscribe(`events-store?channel=s${query}`, { 'last-event-id': id })
    expect(await take(stream, expected.length), `${query} ${id}`).toEqual(expected)
  }
  const ahead = await server.subscribe('events-store?channel=s', { 'last-event-id': '5' })
  await store(server, 1, 6)
  expect(await take(ahead, 1)).toEqual([6])
})

test('CE-14 - events store: a subscriber cut off 100 times at random while 10,000 events are written sees each once, in order', async () => {
  const server = await openCe()
  const total = 10_000
  const next = random(42)
  const seen: number[] = []
  let cuts = 0
  let writing = true
  const writer = (async () => {
    for (let at = 1; at <= total; at += 50) {
      await store(server, 50, at)
      // The writer does not run far ahead, so that cuts fall into live delivery as well as into replay.
      while (seen.length < at - 1500) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    writing = false
  })()
  let last: string | undefined
  while (seen.length < total) {
    const stream = await server.subscribe(
      'events-store?channel=s&events_store_type=2',
      last === undefined ? {} : { 'last-event-id': last },
    )
    const until = cuts < 100 ? seen.length + 1 + Math.floor(next() * ((2 * total) / 101)) : Number.POSITIVE_INFINITY
    while (seen.length < Math.min(total, until)) {
      const { id, data } = await stream.next()
      last = id
      seen.push(JSON.parse(data).data)
    }
    stream.close()
    if (seen.length < total) cuts++
    // What is left of a short run is spread over the cuts that are due.
    if (seen.length >= total - 1 && cuts < 100) break
  }
  await writer
  expect(writing).toBe(false)
  expect(seen).toEqual(range(1, total))
  expect(cuts).toBe(100)
  await until(() => server.connector.openStreams() === 0)
})

test('CE-14 - events store: subscribers of a group share one position; another one gets the events that a lost one did not', async () => {
  const server = await openCe()
  const route = 'events-store?channel=s&group=g&events_store_type=2'
  const [first, second] = [await server.subscribe(route), await server.subscribe(route)]
  await store(server, 100)
  await until(() => first.waiting.length + second.waiting.length === 100)
  const ids = [...first.waiting, ...second.waiting].map(({ id }) => Number(id))
  expect(ids.sort((a, b) => a - b)).toEqual(range(1, 100))
  first.close()
  await until(() => server.connector.openStreams() === 1)
  await store(server, 10, 101)
  await until(() => second.waiting.at(-1)?.id === '110')
})

test('CE-23 - events store: a group forgets its position with its last subscriber, and Last-Event-ID keeps it', async () => {
  const server = await openCe()
  const route = 'events-store?channel=s&group=g'
  const first = await server.subscribe(`${route}&events_store_type=2`)
  await store(server, 3)
  await until(() => first.waiting.length === 3)
  first.close()
  await until(() => server.connector.openStreams() === 0)
  await store(server, 2, 4)
  const again = await server.subscribe(`${route}&events_store_type=2`)
  await until(() => again.waiting.length === 5)
  again.close()
  await until(() => server.connector.openStreams() === 0)
  const kept = await server.subscribe(route, { 'last-event-id': '3' })
  await until(() => kept.waiting.length === 2)
  expect(kept.waiting.map(({ id }) => id)).toEqual(['4', '5'])
})

test('CE-24 - events store: a durable group continues at its position after its last subscriber left', async () => {
  const server = await openCe()
  const route = 'events-store?channel=s&group=g&durable=true'
  const first = await server.subscribe(`${route}&events_store_type=2`)
  await store(server, 3)
  await until(() => first.waiting.length === 3)
  first.close()
  await until(() => server.connector.openStreams() === 0)
  await store(server, 2, 4)
  // The position has priority over the query and over Last-Event-ID.
  const again = await server.subscribe(`${route}&events_store_type=2`, { 'last-event-id': '1' })
  await until(() => again.waiting.length === 2)
  expect(again.waiting.map(({ id }) => id)).toEqual(['4', '5'])
})

test('CE-24 - events store: durable requires a group, and other subscriptions do not have it', async () => {
  const server = await openCe()
  for (const [path, problem] of [
    ['events-store?channel=s&durable=true', { parameter: 'durable', allowed: 'false, or true with group' }],
    ['events?channel=e&group=g&durable=true', { parameter: 'durable' }],
    ['commands?channel=c&group=g&durable=true', { parameter: 'durable' }],
  ] as const) {
    const response = await fetch(`${server.base}/ce/subscribe/${path}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ data: { code: 'PARAMETER_INVALID', problems: [problem] } })
  }
})

test('CE-17 - slow subscribers: one of an events store gets backpressure and loses nothing', async () => {
  const server = await openCe({ maxBufferedBytes: 65_536 })
  const { post } = server
  const slow = await server.subscribe('events-store?channel=s')
  const quick = await server.subscribe('events-store?channel=s')
  slow.pause()
  const pad = 'x'.repeat(20_000)
  const total = 500
  for (let at = 0; at < total; at += 100) {
    const batch = range(at + 1, at + 100).map((n) => event({ id: `${n}`, subject: 's', data: pad }))
    await post('send/event-store', JSON.stringify(batch), { 'content-type': 'application/cloudevents-batch+json' })
  }
  await until(() => quick.waiting.length === total)
  // 10 MB were written; what the server holds for the paused one is what its socket refused.
  expect(slow.waiting.length).toBeLessThan(total)
  slow.resume()
  await until(() => slow.waiting.length === total)
  expect(slow.waiting.map(({ id }) => Number(id))).toEqual(range(1, total))
})

test('CE-17 - slow subscribers: one of events loses events, and gets their count at the place of the gap', async () => {
  const dropped: number[] = []
  const server = await openCe({ maxBufferedBytes: 65_536, hooks: { eventsDropped: (count) => dropped.push(count) } })
  const { user } = server
  const slow = await server.subscribe('events?channel=c')
  const quick = await server.subscribe('events?channel=c')
  slow.pause()
  const pad = 'x'.repeat(20_000)
  const total = 500
  let sent = 0
  const publish = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await user.events.publish('c', { body: Buffer.from(JSON.stringify({ n: ++sent, pad })) })
      if (sent % 2 === 0) await until(() => quick.waiting.length === sent)
    }
  }
  await publish(total)
  slow.resume()
  await until(() => slow.waiting.some(({ event }) => event === 'error'))
  await publish(10)
  await until(() => slow.waiting.at(-1)?.data.startsWith('{') === true && quick.waiting.length === sent)
  await until(() => JSON.parse(slow.waiting.at(-1)!.data).data.n === sent)
  // Every number is there or in a gap, and the gaps are where they are said to be.
  let due = 1
  let lost = 0
  const wrong: string[] = []
  for (const { event, data } of slow.waiting) {
    const { message, data: content } = JSON.parse(data)
    if (event !== 'error') {
      if (content.n !== due++) wrong.push(`${content.n}`)
    } else {
      if (content.code !== 'SLOW_SUBSCRIBER' || !/ (1 event was|\d+ events were) left out here$/.test(message)) {
        wrong.push(data)
      }
      lost += content.dropped
      due += content.dropped
    }
  }
  expect(wrong).toEqual([])
  expect(lost).toBeGreaterThan(0)
  expect(due - 1).toBe(sent)
  expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(lost)
})

test('CE-17 - slow subscribers: one that takes nothing for the idle time is cut off, and its loss is counted', async () => {
  const dropped: number[] = []
  const server = await openCe({
    maxBufferedBytes: 65_536,
    // Long enough for the kernel's buffers to be full before.
    maxSseIdleSeconds: 1,
    hooks: { eventsDropped: (count) => dropped.push(count) },
  })
  const slow = await server.subscribe('events?channel=c')
  slow.pause()
  const body = Buffer.from(JSON.stringify('x'.repeat(100_000)))
  while (server.connector.openStreams() > 0) {
    await server.user.events.publish('c', { body })
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await until(async () => dropped.length > 0 && (await server.connections()) === 0)
  expect(dropped.length).toBe(1)
})
