import { Buffer } from 'node:buffer'

import { CORE_TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createTools } from '../src/tools/index.ts'
import { resultText, rpc, startHost } from './mcp-host.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench, problemsOf } from './tool-bench.ts'

const SETTLE_TOOLS = ['queue_ack', 'queue_nack', 'queue_extend']

interface Leased {
  readonly body: string
  readonly receipt: string
  readonly receive_count: number
}

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench(undefined, {}, { leases: true })
})

afterAll(() => bench[Symbol.asyncDispose]())

async function lease(channel: string, seconds: number, wait = 1): Promise<readonly Leased[]> {
  const args = { channel, max_messages: 10, wait_timeout_seconds: wait, lease_seconds: seconds }
  return (await bench.json('queue_receive', args)) as Leased[]
}

async function leaseOne(channel: string, seconds: number): Promise<Leased> {
  await bench.call('queue_send', { channel, body: 'work' })
  const [message] = await lease(channel, seconds)
  if (message === undefined) throw new Error('no message was leased')
  return message
}

async function waiting(channel: string): Promise<number | undefined> {
  return (await bench.user.channels.info('queues', channel)).queue?.waiting
}

describe('tools - leases', () => {
  test('M25 - without leases the tools and their arguments are the same as before', () => {
    const tools = createTools()
    expect([...tools.keys()]).not.toEqual(expect.arrayContaining(SETTLE_TOOLS))
    expect(tools.get('queue_receive')?.definition.inputSchema.properties).not.toHaveProperty('lease_seconds')
  })

  test('M25 - with leases queue_receive takes lease_seconds, and three tools settle', async () => {
    const forQueues = [...CORE_TOOL_NAMES.filter((name) => name.startsWith('queue_')), ...SETTLE_TOOLS]
    expect([...bench.tools.keys()].slice(0, forQueues.length)).toEqual(forQueues)
    expect(bench.tools.size).toBe(CORE_TOOL_NAMES.length + SETTLE_TOOLS.length)
    const definitions = [...bench.tools.values()].map(({ definition }) => definition)
    expect(definitions.map(({ description }) => description.length).every((length) => length > 100)).toBe(true)
    expect(Buffer.byteLength(JSON.stringify(definitions))).toBeLessThan(16 * 1024)
  })

  test('M25 - without lease_seconds, and with 0, messages are removed', async () => {
    for (const more of [{}, { lease_seconds: 0 }, { lease_seconds: null }]) {
      await bench.call('queue_send', { channel: 'removed', body: 'x' })
      const received = await bench.json('queue_receive', { channel: 'removed', max_messages: 1, ...more })
      expect(received).toEqual([{ body: 'x', metadata: '', tags: {} }])
    }
    expect(await waiting('removed')).toBe(0)
  })

  test('M25 - a leased message has a receipt and its count of receives, and stays leased after the answer', async () => {
    await bench.call('queue_send', { channel: 'kept', body: 'work', tags: { k: 'v' } })
    const args = { channel: 'kept', max_messages: 1, lease_seconds: 60 }
    const { text, settlement, structuredContent } = await bench.call('queue_receive', args)
    const receipt: unknown = expect.stringMatching(/./)
    const message = { body: 'work', metadata: '', tags: { k: 'v' }, receipt, receive_count: 1 }
    expect(JSON.parse(text)).toEqual([message])
    expect(structuredContent).toEqual({ messages: [message] })
    await settlement?.commit()
    expect((await bench.user.channels.info('queues', 'kept')).queue).toMatchObject({ waiting: 0, inFlight: 1 })
  })

  test('M14, M25 - an answer that does not reach the client returns the messages', async () => {
    await bench.call('queue_send', { channel: 'unread', body: 'work' })
    const args = { channel: 'unread', max_messages: 1, lease_seconds: 60 }
    const { settlement } = await bench.call('queue_receive', args)
    await settlement?.rollback()
    expect(await lease('unread', 60)).toEqual([expect.objectContaining({ body: 'work', receive_count: 2 })])
  })

  test('M25 - queue_ack removes the message', async () => {
    const { receipt } = await leaseOne('acked', 60)
    const { text, isError, structuredContent } = await bench.call('queue_ack', { receipts: [receipt] })
    expect({ text, isError, structuredContent }).toEqual({
      text: '1 of 1 messages acknowledged and removed.',
      isError: false,
      structuredContent: { settled: 1, lost: [] },
    })
    expect((await bench.user.channels.info('queues', 'acked')).queue).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M25 - queue_nack returns the message at once, and the receive counts', async () => {
    const { receipt } = await leaseOne('nacked', 60)
    await bench.call('queue_nack', { receipts: [receipt] })
    expect(await lease('nacked', 60)).toEqual([expect.objectContaining({ body: 'work', receive_count: 2 })])
  })

  test('M25 - queue_nack with a delay returns the message when the delay is over', async () => {
    const { receipt } = await leaseOne('later', 60)
    const { text } = await bench.call('queue_nack', { receipts: [receipt], delay_seconds: 2 })
    expect(text).toBe('1 of 1 messages rejected; they can be received again in 2 s.')
    expect(await waiting('later')).toBe(0)
    expect(await lease('later', 60, 10)).toEqual([expect.objectContaining({ body: 'work', receive_count: 2 })])
  })

  test('M25 - a nack with a delay counts for the dead-letter queue', async () => {
    await bench.call('queue_send', { channel: 'poison', body: 'x', max_receive_count: 1, dead_letter_queue: 'dead' })
    const [message] = await lease('poison', 60)
    await bench.call('queue_nack', { receipts: [message?.receipt], delay_seconds: 1 })
    expect(await bench.json('queue_receive', { channel: 'dead', max_messages: 1, wait_timeout_seconds: 10 })).toEqual([
      expect.objectContaining({ body: 'x' }),
    ])
  })

  test('M25 - queue_nack with reject moves the message to its dead-letter queue, or is refused without one', async () => {
    await bench.call('queue_send', { channel: 'bad', body: 'x', max_receive_count: 9, dead_letter_queue: 'bad.dead' })
    const [message] = await lease('bad', 60)
    const { text } = await bench.call('queue_nack', { receipts: [message?.receipt], reject: true })
    expect(text).toBe('1 of 1 messages moved to a dead-letter queue.')
    const [dead] = await bench.user.queues.peek('bad.dead')
    expect(dead?.tags).toMatchObject({ dlq_source: 'bad', dlq_reason: 'rejected' })
    const { receipt } = await leaseOne('alone', 60)
    const refused = await bench.call('queue_nack', { receipts: [receipt], reject: true })
    expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('NO_DEAD_LETTER_QUEUE')])
    expect((await bench.call('queue_ack', { receipts: [receipt] })).structuredContent).toEqual({ settled: 1, lost: [] })
  })

  test('M25 - queue_extend keeps the message from others after the first lease', async () => {
    const { receipt } = await leaseOne('extended', 2)
    await bench.call('queue_extend', { receipts: [receipt], lease_seconds: 60 })
    expect(await lease('extended', 60, 3)).toEqual([])
    expect((await bench.call('queue_ack', { receipts: [receipt] })).structuredContent).toEqual({ settled: 1, lost: [] })
  })

  test('M25 - a lost receipt is named, and the others are settled', async () => {
    const { receipt } = await leaseOne('lost', 60)
    const { text, isError, structuredContent } = await bench.call('queue_ack', { receipts: [receipt, 'nonsense'] })
    expect(isError).toBe(false)
    expect(structuredContent).toEqual({ settled: 1, lost: ['nonsense'] })
    expect(text).toMatch(/^1 of 2 messages acknowledged and removed\. Lost receipts: "nonsense"\. .*Do not repeat/)
  })

  test('M25 - arguments out of range are refused', async () => {
    for (const [tool, args, argument] of [
      ['queue_ack', { receipts: [] }, 'receipts'],
      ['queue_ack', { receipts: Array.from({ length: 101 }, String) }, 'receipts'],
      ['queue_nack', { receipts: ['r'], delay_seconds: -1 }, 'delay_seconds'],
      ['queue_nack', { receipts: ['r'], delay_seconds: 1, reject: true }, 'delay_seconds'],
      ['queue_extend', { receipts: ['r'], lease_seconds: 0 }, 'lease_seconds'],
      ['queue_extend', { receipts: ['r'] }, 'lease_seconds'],
      ['queue_receive', { channel: 'q', max_messages: 1, lease_seconds: 43_201 }, 'lease_seconds'],
    ] as const) {
      const [problem] = problemsOf(await bench.refused(tool, args))
      expect(problem?.argument, tool).toBe(argument)
    }
  })

  test('M25 - another process of the same client settles what was leased over HTTP', async () => {
    const host = await startHost({ leases: true })
    await host.call('queue_send', { channel: 'http', body: 'work' })
    const received = await host.call('queue_receive', { channel: 'http', max_messages: 1, lease_seconds: 60 })
    const [message] = JSON.parse(resultText(received)) as Leased[]
    const acked = rpc(await host.call('queue_ack', { receipts: [message?.receipt] }))
    expect(acked.result?.['structuredContent']).toEqual({ settled: 1, lost: [] })
  })
})
