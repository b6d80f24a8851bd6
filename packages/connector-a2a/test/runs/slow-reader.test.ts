import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import type { Script } from '../agents.ts'
import { json } from '../agents.ts'
import type { GatewayHost } from '../gateway-host.ts'
import { beginStream, DURABLE, openDurable, send, taskEvent } from './durable-host.ts'

const MIB = 1024 * 1024

/** The artifacts of the agent, of 64 KiB each: more than the log keeps of one run. */
const ARTIFACTS = 480
const EVENTS = ARTIFACTS + 2

/** Events that a reader with this pace may be behind. */
const BEHIND = 64

/** Answers a message with artifacts, at the pace of a reader, and any other request with its task. */
function flood(reader: Promise<Reader>): Script {
  return async ({ body }, response) => {
    const { method } = JSON.parse(body) as { method: string }
    if (method === 'GetTask') {
      json(response, '{"jsonrpc":"2.0","id":1,"result":{"id":"t1","status":{"state":"TASK_STATE_WORKING"}}}')
      return
    }
    beginStream(response)
    response.write(taskEvent('t1', { task: 'WORKING' }))
    for (let n = 1; n <= ARTIFACTS; n++) {
      response.write(taskEvent('t1', { artifact: `${n} ${'x'.repeat(65_536)}` }))
      if (n % (BEHIND / 2) !== 0) continue
      const { sequences } = await reader
      await until(() => n - sequences.length < BEHIND)
    }
    response.end(taskEvent('t1', { state: 'COMPLETED' }))
  }
}

interface Reader {
  readonly response: IncomingMessage
  /** The sequences of the events that it has read. */
  readonly sequences: number[]
  /** The event in place of removed ones. */
  gap: string | undefined
  isOver: boolean
}

/** Opens a stream that the test can stop reading, and reads its first event. */
async function openStream({ port }: GatewayHost): Promise<Reader> {
  const headers = { 'a2a-version': '1.0', 'content-type': 'application/json' }
  const asked = request({ port, path: `/a2a/${DURABLE}`, method: 'POST', headers, agent: false })
  asked.on('error', () => {})
  asked.end(JSON.stringify(send('go', 'm1', 1, 'SendStreamingMessage')))
  onTestFinished(() => void asked.destroy())
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  const reader: Reader = { response, sequences: [], gap: undefined, isOver: false }
  let text = ''
  response.setEncoding('latin1').on('data', (chunk: string) => {
    const events = `${text}${chunk}`.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const [, sequence] = /^id: [0-9a-f-]+\.(\d+)$/m.exec(event) ?? []
      if (sequence !== undefined) reader.sequences.push(Number(sequence))
      if (event.includes('signalbox.gap')) reader.gap = event
      if (event.includes('TASK_STATE_COMPLETED')) reader.isOver = true
    }
  })
  await until(() => reader.sequences.length > 0)
  return reader
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

test('slow reader - it misses the events that were removed meanwhile, and gets the task in their place; others get all', async () => {
  const paced = Promise.withResolvers<Reader>()
  const { host } = await openDurable(flood(paced.promise))
  const slow = await openStream(host)
  slow.response.pause()
  const fast = await openStream(host)
  paced.resolve(fast)
  await until(() => fast.isOver)
  expect(fast.sequences).toEqual(numbers(1, EVENTS))
  slow.response.resume()
  await until(() => slow.isOver)
  const { gap = '', sequences } = slow
  const [, from, to] = /"signalbox.gap":\{"from":(\d+),"to":(\d+)\}/.exec(gap) ?? []
  expect(Number(to) - Number(from)).toBeGreaterThan(100)
  expect(sequences).toEqual([...numbers(1, Number(from) - 1), ...numbers(Number(to), EVENTS)])
})

test('slow reader - those that read nothing are cut off, and hold little memory; others get all', async () => {
  const paced = Promise.withResolvers<Reader>()
  const { host } = await openDurable(flood(paced.promise), { streamLimits: { slowConsumerMs: 1_000 } })
  const slow = await Promise.all(Array.from({ length: 8 }, () => openStream(host)))
  for (const { response } of slow) response.pause()
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  const fast = await openStream(host)
  paced.resolve(fast)
  await until(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    return fast.isOver
  })
  expect(fast.sequences).toEqual(numbers(1, EVENTS))
  // Without a bound, each of them would hold the 30 MiB of the run.
  expect(most).toBeLessThan(120 * MIB)
  await until(() => host.connector.openStreams() === 0)
  for (const { isOver } of slow) expect(isOver).toBe(false)
})
