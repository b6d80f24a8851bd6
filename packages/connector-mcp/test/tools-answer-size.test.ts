import { Buffer } from 'node:buffer'

import { AdmissionControl } from '@signalbox/http-kit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { McpHost } from './mcp-host.ts'
import { startHost, toolCall } from './mcp-host.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

const CONTROL = '\u0001'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench(undefined, {}, { maxAnswerBytes: 262_144 })
})

afterAll(() => bench[Symbol.asyncDispose]())

describe('Pages - a result of many large messages', () => {
  test('stops at 256 KiB of text, and says how many messages may follow and how to get them', async () => {
    const body = CONTROL.repeat(10_000)
    for (let n = 0; n < 20; n++) {
      await bench.user.queues.send('pages', { body })
      await bench.user.eventsStore.publish('pages', { body })
    }
    const channel = 'pages'
    for (const [tool, args, remedy] of [
      ['queue_peek', { channel, max_messages: 20 }, /queue_receive/],
      ['events_store_read', { channel, max_messages: 20 }, /from_sequence 5\b/],
      ['events_store_read_latest', { channel, count: 20 }, /before sequence 17\b/],
      ['queue_receive', { channel, max_messages: 20 }, /call queue_receive again/],
    ] as const) {
      const { text, hint, structuredContent } = await bench.call(tool, args)
      expect(JSON.parse(text)).toHaveLength(4)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(262_144)
      expect(hint).toContain('up to 16 more messages')
      expect(hint).toMatch(remedy)
      expect(structuredContent).toMatchObject({ more: true })
    }
  })

  test('leases no more messages than it has, so that the others keep their receive count', async () => {
    const body = CONTROL.repeat(30_000)
    for (let n = 0; n < 3; n++) await bench.user.queues.send('kept', { body: `${n}${body}` })
    const counts: unknown[] = []
    for (let n = 0; n < 3; n++) {
      const { text, settlement } = await bench.call('queue_receive', { channel: 'kept', max_messages: 3 })
      expect(JSON.parse(text)).toHaveLength(1)
      const { waiting, inFlight } = (await bench.user.channels.info('queues', 'kept')).queue ?? {}
      counts.push([waiting, inFlight])
      await settlement?.commit()
    }
    expect(counts).toEqual([
      [2, 1],
      [1, 1],
      [0, 1],
    ])
  })

  test('always has the first message, whole', async () => {
    const body = CONTROL.repeat(500_000)
    await bench.user.queues.send('first', { body })
    const { text, hint } = await bench.call('queue_peek', { channel: 'first', max_messages: 10 })
    expect(JSON.parse(text)).toEqual([{ body, metadata: '', tags: {} }])
    expect(hint).toBeUndefined()
  })
})

describe('Pages - an answer over HTTP', () => {
  const peek = toolCall('queue_peek', { channel: 'large', max_messages: 10 })
  const first = `${CONTROL}"é`.repeat(100_000)

  async function hostWithMessages(options: Parameters<typeof startHost>[0] = {}): Promise<McpHost> {
    const host = await startHost(options)
    for (const body of [first, 'second']) await host.user.queues.send('large', { body })
    return host
  }

  test('J3 - has its size as Content-Length, and the hint as a second text', async () => {
    const host = await hostWithMessages()
    const { headers, text } = await host.post(peek)
    expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(text))
    const { content, structuredContent } = JSON.parse(text).result
    expect(content).toHaveLength(2)
    expect(JSON.parse(content[0].text)).toEqual([{ body: first, metadata: '', tags: {} }])
    expect(content[1].text).toContain('up to 9 more messages')
    expect(structuredContent).toEqual({
      messages: [{ metadata: '', tags: {} }],
      bodies: 'in text',
      more: true,
      note: expect.stringContaining('up to 9 more messages'),
    })
  })

  test('is one event for a client that reads only event streams', async () => {
    const host = await hostWithMessages()
    const { text } = await host.post(peek, { accept: 'text/event-stream' })
    const [event = '', data = ''] = text.trimEnd().split('\n')
    expect(event).toBe('event: message')
    expect(JSON.parse(JSON.parse(data.slice('data: '.length)).result.content[0].text)[0].body).toBe(first)
  })

  test('is refused as busy if the budget of the caller is reached, and its messages stay in the queue', async () => {
    const admission = new AdmissionControl({
      limits: { process: { bodyBytes: 300_000 }, caller: { bodyBytes: 300_000 } },
    })
    const host = await hostWithMessages({ frontDoor: { admission } })
    const { text } = await host.post(toolCall('queue_receive', { channel: 'large', max_messages: 10 }))
    expect(JSON.parse(text).error).toMatchObject({ code: -32603 })
    await expect
      .poll(async () => (await host.user.channels.info('queues', 'large')).queue)
      .toMatchObject({ waiting: 2, inFlight: 0 })
    expect(admission.use.bodyBytes).toBe(0)
  })
})
