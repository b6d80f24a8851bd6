import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench()
  await bench.user.commands.subscribe('orders', {}, () => ({}))
  await bench.user.queries.subscribe('orders', {}, () => ({}))
  await bench.call('queue_send', { channel: 'orders', body: 'a' })
  await bench.call('queue_send', { channel: 'orders', body: 'b' })
  await bench.call('queue_send', { channel: 'orders.eu', body: 'a' })
  await bench.call('events_publish', { channel: 'orders', body: 'a' })
  await bench.call('events_store_publish', { channel: 'orders', body: 'a' })
  await bench.call('command_send', { channel: 'orders', body: 'a' })
  await bench.call('query_send', { channel: 'orders', body: 'a' })
  await bench.system.eventsStore.publish('_AGENTS_.audit', { body: new Uint8Array() })
})

afterAll(() => bench[Symbol.asyncDispose]())

const list = async (args: object) => (await bench.json('channel_list', args)) as { type: string; name: string }[]
const named = (channels: { type: string; name: string }[]) =>
  channels.map(({ type, name }) => `${type}:${name}`).toSorted()

describe('tools - channel_list', () => {
  test('TOOL-22, SHAPE-3, M8 - lists every channel of the user, of each type', async () => {
    const { text, structuredContent } = await bench.call('channel_list', {})
    const channels = JSON.parse(text) as { type: string; name: string }[]
    expect(structuredContent).toEqual({ channels })
    expect(named(channels)).toEqual([
      'commands:orders',
      'events:orders',
      'events_store:orders',
      'queries:orders',
      'queues:orders',
      'queues:orders.eu',
    ])
    for (const channel of channels) {
      expect(channel).toEqual({ name: expect.any(String), type: expect.any(String), is_active: true })
    }
  })

  test('TOOL-22 - a call without arguments lists all channels', async () => {
    expect(JSON.parse((await bench.call('channel_list', undefined)).text)).toHaveLength(6)
  })

  test('TOOL-22, M9 - filters by type, by prefix and by glob', async () => {
    expect(named(await list({ type: 'queues' }))).toEqual(['queues:orders', 'queues:orders.eu'])
    expect(named(await list({ type: 'queues', pattern: 'orders.' }))).toEqual(['queues:orders.eu'])
    expect(named(await list({ pattern: '*.eu' }))).toEqual(['queues:orders.eu'])
    expect(named(await list({ type: 'queues', pattern: 'order?' }))).toEqual(['queues:orders'])
    expect(named(await list({ type: 'queues', pattern: '' }))).toHaveLength(2)
  })

  test('TOOL-22, M10 - pages lead one to the next, also when a channel goes meanwhile', async () => {
    const seen: string[] = []
    let cursor: object = {}
    for (let pages = 0; pages < 3; pages++) {
      const { text, structuredContent } = await bench.call('channel_list', { limit: 2, ...cursor })
      const { channels, next_cursor } = structuredContent as { channels: typeof seen; next_cursor?: string }
      expect(JSON.parse(text)).toEqual(channels)
      seen.push(...named(JSON.parse(text)))
      if (pages === 0) await bench.user.channels.delete('events', 'orders')
      expect(next_cursor === undefined).toBe(pages === 2)
      cursor = { cursor: next_cursor }
    }
    expect(seen).toEqual([
      'commands:orders',
      'events:orders',
      'events_store:orders',
      'queries:orders',
      'queues:orders',
      'queues:orders.eu',
    ])
    await bench.call('events_publish', { channel: 'orders', body: 'a' })
    const { data } = await bench.refused('channel_list', { cursor: 'none' })
    expect(data).toMatchObject({ problems: [{ argument: 'cursor' }] })
  })

  test('TOOL-22 - a list of 10,000 channels of the longest names leaves the event loop free', async () => {
    const large = await openToolBench(undefined, { maxChannels: 30_000 })
    const { events } = large.user
    for (let i = 0; i < 15_000; i++) await events.publish(`${'x'.repeat(250)}${i}`, { body: new Uint8Array() })
    const begun = process.threadCpuUsage()
    const { text, structuredContent } = await large.call('channel_list', {})
    // In µs. Not the delay of the loop, in which other processes may have had the processor.
    const { user, system } = process.threadCpuUsage(begun)
    expect(text.length).toBeLessThan(4_300_000)
    expect(structuredContent).toHaveProperty('next_cursor')
    expect((user + system) / 1_000).toBeLessThan(300)
    await large[Symbol.asyncDispose]()
  })

  test('TOOL-22 - an empty list is a success', async () => {
    const { text, isError, structuredContent } = await bench.call('channel_list', { pattern: 'nothing' })
    expect({ text, isError, structuredContent }).toEqual({
      text: '[]',
      isError: false,
      structuredContent: { channels: [] },
    })
  })
})

describe('tools - channel_info', () => {
  test.each([
    ['queues', 2, 0],
    ['events', 1, 0],
    ['events_store', 1, 0],
    ['commands', 1, 1],
    ['queries', 1, 1],
  ])('TOOL-23, SHAPE-4, C3 - %s: %i in, %i out', async (type, incoming, outgoing) => {
    const { text, isError, structuredContent } = await bench.call('channel_info', { channel: 'orders', type })
    expect(isError).toBe(false)
    expect(JSON.parse(text)).toEqual({ name: 'orders', type, is_active: true, incoming, outgoing })
    expect(structuredContent).toMatchObject(JSON.parse(text))
  })

  test('TOOL-23 - counts delivered messages', async () => {
    await bench.call('queue_send', { channel: 'counted', body: 'a' })
    await bench.json('queue_receive', { channel: 'counted', max_messages: 1 })
    expect(await bench.json('channel_info', { channel: 'counted', type: 'queues' })).toMatchObject({
      incoming: 1,
      outgoing: 1,
    })
  })

  test('TOOL-23, M10 - the structured content shows the contents of a queue, the text does not', async () => {
    const channel = 'held'
    for (const body of ['a', 'b', 'c', 'd']) await bench.call('queue_send', { channel, body })
    await bench.call('queue_send', { channel, body: 'later', delay_seconds: 60 })
    await bench.user.queues.receive(channel, { maxMessages: 1 })
    const { text, structuredContent } = await bench.call('channel_info', { channel, type: 'queues' })
    expect(JSON.parse(text)).toEqual({ name: channel, type: 'queues', is_active: true, incoming: 5, outgoing: 1 })
    expect(structuredContent).toEqual({
      ...JSON.parse(text),
      waiting: 3,
      delayed: 1,
      in_flight: 1,
      dead_lettered: 0,
    })
  })

  test('TOOL-23, M10 - the structured content of a queue counts its dead-lettered messages', async () => {
    const channel = 'failing'
    await bench.call('queue_send', { channel, body: 'a', max_receive_count: 1, dead_letter_queue: 'failed' })
    const [delivery] = await bench.user.queues.receive(channel, { maxMessages: 1 })
    await bench.user.queues.nack([String(delivery?.receipt)])
    const { structuredContent } = await bench.call('channel_info', { channel, type: 'queues' })
    expect(structuredContent).toMatchObject({ waiting: 0, delayed: 0, in_flight: 0, dead_lettered: 1 })
  })

  test('TOOL-23, M10 - the structured content shows the range of events of a store', async () => {
    const channel = 'log'
    for (const body of ['a', 'b', 'c']) await bench.call('events_store_publish', { channel, body })
    const { text, structuredContent } = await bench.call('channel_info', { channel, type: 'events_store' })
    expect(structuredContent).toEqual({ ...JSON.parse(text), first_sequence: 1, last_sequence: 3 })
    const other = await bench.call('channel_info', { channel: 'orders', type: 'commands' })
    expect(other.structuredContent).toEqual(JSON.parse(other.text))
  })

  test('TOOL-23, M10 - the error for a channel names the types under which the name exists', async () => {
    await bench.call('queue_send', { channel: 'typed', body: 'a' })
    await bench.call('events_store_publish', { channel: 'typed', body: 'a' })
    const { text } = await bench.call('channel_info', { channel: 'typed', type: 'events' })
    expect(text).toMatch(/^CHANNEL_NOT_FOUND: .*"typed" of type events.*exists as queues and events_store\./)
    const none = await bench.call('channel_info', { channel: 'nowhere', type: 'events' })
    expect(none.text).not.toContain('exists as')
  })

  test('TOOL-23 - a channel that does not exist is a tool error with the remedy', async () => {
    for (const args of [
      { channel: 'nothing', type: 'queues' },
      { channel: 'orders.eu', type: 'events' },
    ]) {
      const { text, isError } = await bench.call('channel_info', args)
      expect(isError).toBe(true)
      expect(text).toMatch(/^CHANNEL_NOT_FOUND: /)
      expect(text).toContain(args.channel)
      expect(text).toContain('channel_list')
    }
  })
})
