import { encodeText } from '@signalbox/broker-core'
import { AdmissionControl } from '@signalbox/http-kit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { AgentDesk } from './agent-desk.ts'
import { resultText, startHost, toolCall } from './mcp-host.ts'
import { RawConnection } from './raw-connection.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

/** Its body twice is over 64 KiB; half of it twice is not. */
const LARGE = 'x'.repeat(33_000)
const SMALL = LARGE.slice(0, 16_000)

let bench: ToolBench
let result = ''

beforeAll(async () => {
  bench = await openToolBench(async (system) => {
    const desk = new AgentDesk(system)
    await desk.register({ agent_id: 'a1', name: 'A' }, () => ({ body: `{"jsonrpc":"2.0","id":1,"result":${result}}` }))
    return desk
  })
})

afterAll(() => bench[Symbol.asyncDispose]())

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
  connection.post(toolCall('queue_receive', { channel: 'q', max_messages: 4 }))
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
