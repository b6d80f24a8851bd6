import { Buffer } from 'node:buffer'

import type { BrokerHandle } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { AdmissionControl } from '@signalbox/http-kit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { TestAgentDirectory } from './agent-directory.ts'
import type { McpHost } from './mcp-host.ts'
import { resultText, startHost, toolCall } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

const CONTROL = '\u0001'

/** Its body twice is over 64 KiB; half of it twice is not. */
const LARGE = 'x'.repeat(33_000)
const SMALL = LARGE.slice(0, 16_000)

let bench: ToolBench
/** The result of the agent `a1`. */
let result = ''

async function openDirectory(system: BrokerHandle): Promise<TestAgentDirectory> {
  const directory = new TestAgentDirectory(system)
  await directory.register({ agent_id: 'a1', name: 'A' }, () => ({
    body: `{"jsonrpc":"2.0","id":1,"result":${result}}`,
  }))
  return directory
}

beforeAll(async () => {
  bench = await openToolBench(openDirectory, {}, { maxAnswerBytes: 262_144 })
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

  test('is refused before its messages are read or leased if the budget of the caller is reached', async () => {
    const admission = new AdmissionControl({
      limits: { process: { bodyBytes: 300_000 }, caller: { bodyBytes: 300_000 } },
    })
    const host = await hostWithMessages({ frontDoor: { admission } })
    const { text } = await host.post(toolCall('queue_receive', { channel: 'large', max_messages: 10 }))
    expect(JSON.parse(text).error).toMatchObject({ code: -32603 })
    await expect
      .poll(async () => (await host.user.channels.info('queues', 'large')).queue)
      .toMatchObject({ waiting: 2, inFlight: 0 })
    expect(await host.user.queues.peek('large')).toMatchObject([{ receiveCount: 0 }])
    await host.user.eventsStore.publish('large', { body: first })
    for (const tool of [peek, toolCall('events_store_read', { channel: 'large', max_messages: 10 })]) {
      expect(JSON.parse((await host.post(tool)).text).error).toMatchObject({ code: -32603 })
    }
    expect(admission.use.bodyBytes).toBe(0)
  })
})

test('M10 - bodies of an answer over 64 KiB are only in its text, and the structured content states this', async () => {
  for (const body of [LARGE, SMALL]) {
    const large = body === LARGE
    const channel = large ? 'large' : 'small'
    const fields = { metadata: 'm', tags: { k: 'v' } }
    const message = large ? fields : { body, ...fields }
    const note = expect.stringContaining('only in the text of this result')
    const bodies = large ? { bodies: 'in text', note } : {}

    await bench.call('queue_send', { channel, body, ...fields })
    for (const tool of ['queue_peek', 'queue_receive']) {
      const { text, structuredContent } = await bench.call(tool, { channel, max_messages: 1 })
      expect(JSON.parse(text)).toEqual([expect.objectContaining({ body })])
      expect(structuredContent).toEqual({ messages: [message], ...bodies })
    }

    await bench.call('events_store_publish', { channel, body, ...fields })
    for (const [tool, args] of [
      ['events_store_read', { channel, max_messages: 1 }],
      ['events_store_read_latest', { channel }],
    ] as const) {
      const { text, structuredContent } = await bench.call(tool, args)
      expect(JSON.parse(text)).toEqual([expect.objectContaining({ body, sequence: 1 })])
      const timestamp: unknown = expect.any(String)
      expect(structuredContent).toEqual({ events: [{ ...message, sequence: 1, timestamp }], ...bodies })
    }

    const reply = { body: encodeText(body), ...fields }
    await bench.broker.as({ clientId: 'responder' }).queries.subscribe(channel, {}, () => reply)
    const asked = await bench.call('query_send', { channel, body: '' })
    expect(asked.text).toBe(body)
    expect(asked.structuredContent).toEqual({ ...fields, ...(large ? bodies : { reply: body }) })

    result = JSON.stringify({ text: body })
    for (const args of [{ message: 'Hello' }, { method: 'm' }]) {
      const sent = await bench.call('message' in args ? 'agent_send' : 'agent_query', { agent_id: 'a1', ...args })
      expect(sent.text).toBe(result)
      expect(sent.structuredContent).toEqual(large ? bodies : { reply: { text: body } })
    }
  }
})

test('M10 - a client that does not read a large answer is cut off, and its messages are rejected', async () => {
  const admission = new AdmissionControl()
  const host = await startHost({ frontDoor: { admission, stalledReaderMs: 1_000 } })
  await host.user.queues.send('q', { body: encodeText('x'.repeat(9_000_000)) })
  const connection = await RawConnection.open(host.port)
  connection.socket.pause()
  connection.post('/mcp', toolCall('queue_receive', { channel: 'q', max_messages: 4 }))
  await expect.poll(() => admission.use.bodyBytes).toBeGreaterThan(9_000_000)
  await expect.poll(() => admission.use).toMatchObject({ requests: 0, bodyBytes: 0, streams: 0, unreadBytes: 0 })
  // What the client has not taken is in the queue again.
  const again = await host.call('queue_receive', { channel: 'q', max_messages: 4 })
  expect(JSON.parse(resultText(again))).toHaveLength(1)
})

test('M10 - a large body that is not UTF-8 says in both how it is encoded', async () => {
  const bytes = Buffer.alloc(40_000, 0xff)
  await bench.user.queues.send('bytes', { body: bytes })
  const { text, structuredContent } = await bench.call('queue_peek', { channel: 'bytes', max_messages: 1 })
  expect(JSON.parse(text)).toEqual([
    { body: bytes.toString('base64'), body_encoding: 'base64', metadata: '', tags: {} },
  ])
  expect(structuredContent).toEqual({
    messages: [{ body_encoding: 'base64', metadata: '', tags: {} }],
    bodies: 'in text',
    note: expect.stringContaining('only in the text of this result'),
  })
})
