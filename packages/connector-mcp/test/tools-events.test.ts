import type { Message } from '@signalbox/broker-core'
import { decodeText } from '@signalbox/broker-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DEFAULT_MAX_ANSWER_BYTES } from '../src/tools/answer-size.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench()
})

afterAll(() => bench[Symbol.asyncDispose]())

interface Stored {
  readonly body: string
  readonly sequence: number
  readonly timestamp: string
}

async function read(args: object): Promise<readonly Stored[]> {
  return (await bench.json('events_store_read', args)) as Stored[]
}

async function latest(args: object): Promise<readonly Stored[]> {
  return (await bench.json('events_store_read_latest', args)) as Stored[]
}

const bodies = (events: readonly Stored[]) => events.map(({ body }) => body)

describe('tools - events_publish', () => {
  test('TOOL-12 - confirms naming the channel, and reaches every subscriber', async () => {
    const arrived = Promise.withResolvers<Message>()
    await bench.user.events.subscribe('news.*', {}, arrived.resolve)
    const args = { channel: 'news.today', body: 'hello', metadata: 'm', tags: { k: 'v' } }
    const { text, structuredContent } = await bench.call('events_publish', args)
    expect(text).toBe('Event published to channel "news.today".')
    const event = await arrived.promise
    expect(structuredContent).toEqual({ channel: 'news.today', id: event.id })
    expect({ ...event, body: decodeText(event.body) }).toMatchObject({ ...args, clientId: 'anonymous' })
  })

  test('without a subscriber it succeeds, and stores nothing', async () => {
    const { isError } = await bench.call('events_publish', { channel: 'unheard', body: 'b' })
    expect(isError).toBe(false)
    expect(await read({ channel: 'unheard', max_messages: 1 })).toEqual([])
  })
})

describe('tools - events_store_publish', () => {
  test('TOOL-13, TOOL-14 - confirms naming the events store, with sequence numbers 1, 2, 3', async () => {
    for (const sequence of [1, 2, 3]) {
      const { text, structuredContent } = await bench.call('events_store_publish', { channel: 'log', body: 'b' })
      expect(text).toBe(`Event stored in events store "log" with sequence ${sequence}.`)
      expect(structuredContent).toMatchObject({ channel: 'log', sequence, duplicate: false })
      expect(structuredContent).toHaveProperty('timestamp', expect.stringMatching(/^\d{4}-.*T.*\.\d{3}Z$/))
    }
  })

  test('C5 - a repeated message_id is reported as a duplicate and stored once', async () => {
    const args = { channel: 'log.once', body: 'b', tags: { message_id: 'e-1' } }
    await bench.user.channels.create('events_store', 'log.once')
    const first = await bench.call('events_store_publish', args)
    const second = await bench.call('events_store_publish', args)
    expect(second.structuredContent).toEqual({ ...first.structuredContent, duplicate: true })
    expect(second.text).toContain('"log.once"')
    expect(await read({ channel: 'log.once', max_messages: 10 })).toHaveLength(1)
  })

  test('C4 - a body over the limit is a tool error that names it', async () => {
    const limit = bench.broker.engine.limits.maxMessageBytes
    for (const tool of ['events_publish', 'events_store_publish']) {
      const { text, isError } = await bench.call(tool, { channel: 'large', body: 'x'.repeat(limit + 1) })
      expect(isError).toBe(true)
      expect(text).toContain('MESSAGE_TOO_LARGE')
      expect(text).toContain(String(limit))
    }
  })
})

describe('tools - events_store_read', () => {
  beforeAll(async () => {
    for (let i = 1; i <= 5; i++) {
      await bench.call('events_store_publish', {
        channel: 'five',
        body: `e${i}`,
        metadata: 'm',
        tags: { i: String(i) },
      })
    }
  })

  test('TOOL-16, SHAPE-2, M9 - without a start it reads from the first event, oldest first', async () => {
    const { text, structuredContent } = await bench.call('events_store_read', { channel: 'five', max_messages: 2 })
    const events: unknown = JSON.parse(text)
    const time = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
    expect(events).toEqual([
      { body: 'e1', metadata: 'm', tags: { i: '1' }, sequence: 1, timestamp: time },
      { body: 'e2', metadata: 'm', tags: { i: '2' }, sequence: 2, timestamp: time },
    ])
    expect(structuredContent).toEqual({ events })
  })

  test('TOOL-15 - from_sequence is the start of a read, and lets a reader continue', async () => {
    const first = await read({ channel: 'five', max_messages: 3 })
    const rest = await read({ channel: 'five', from_sequence: first.at(-1)!.sequence + 1, max_messages: 100 })
    expect([...bodies(first), ...bodies(rest)]).toEqual(['e1', 'e2', 'e3', 'e4', 'e5'])
    expect(await read({ channel: 'five', from_sequence: 6, max_messages: 1 })).toEqual([])
  })

  test('M9 - from_time is inclusive, in any time zone', async () => {
    const all = await read({ channel: 'five', max_messages: 100 })
    const third = all[2]!
    const since = all.filter(({ timestamp }) => timestamp >= third.timestamp)
    const inZone = new Date(Date.parse(third.timestamp) + 5.5 * 3600_000).toISOString().replace('Z', '+05:30')
    for (const from_time of [third.timestamp, inZone, third.timestamp.replace('Z', '000000Z')]) {
      expect(await read({ channel: 'five', from_time, max_messages: 100 })).toEqual(since)
    }
    const last = new Date(Date.parse(all.at(-1)!.timestamp) + 1).toISOString()
    expect(await read({ channel: 'five', from_time: last, max_messages: 100 })).toEqual([])
    const justAfter = all.at(-1)!.timestamp.replace('Z', '000001Z')
    expect(await read({ channel: 'five', from_time: justAfter, max_messages: 100 })).toEqual([])
    expect(await read({ channel: 'five', from_time: '1960-01-01T00:00:00Z', max_messages: 100 })).toEqual(all)
  })

  test('TOOL-16, TOOL-17 - an unknown channel is an empty result, and reading creates nothing', async () => {
    expect(await read({ channel: 'unwritten', max_messages: 1 })).toEqual([])
    expect(await bench.json('events_store_read_latest', { channel: 'unwritten' })).toEqual([])
    expect(await bench.engine.channels.info('events_store', 'unwritten')).toBeUndefined()
  })

  test('TOOL-17 - the latest come newest first, one unless count is given', async () => {
    expect(bodies(await latest({ channel: 'five' }))).toEqual(['e5'])
    expect(bodies(await latest({ channel: 'five', count: 3 }))).toEqual(['e5', 'e4', 'e3'])
    expect(bodies(await latest({ channel: 'five', count: 100 }))).toEqual(['e5', 'e4', 'e3', 'e2', 'e1'])
  })

  test('M10 - a body that is not UTF-8 is base64, with body_encoding', async () => {
    await bench.user.eventsStore.publish('binary', { body: Uint8Array.of(0xff, 0xfe) })
    const [event] = await read({ channel: 'binary', max_messages: 1 })
    expect(event).toMatchObject({ body: '//4=', body_encoding: 'base64' })
  })

  test('one answer holds a bounded number of bytes', async () => {
    const part = new Uint8Array(bench.broker.engine.limits.maxMessageBytes - 1024).fill(0x61)
    const enough = Math.ceil(DEFAULT_MAX_ANSWER_BYTES / part.length) + 1
    for (let i = 0; i < enough; i++) await bench.user.eventsStore.publish('heavy', { body: part })
    for (const args of [{ max_messages: 100 }, { count: 100 }]) {
      const tool = 'count' in args ? 'events_store_read_latest' : 'events_store_read'
      const events = (await bench.json(tool, { channel: 'heavy', ...args })) as unknown[]
      expect(events.length).toBeLessThan(enough)
      expect(events.length).toBeGreaterThan(0)
    }
  })
})
