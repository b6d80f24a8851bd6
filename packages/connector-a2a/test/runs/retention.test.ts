import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import type { RunChunk } from '../../src/runs/run-log.ts'
import { newRun, RunLog } from '../../src/runs/run-log.ts'
import type { Script } from '../agents.ts'
import { json } from '../agents.ts'
import { beginStream, DURABLE, openDurable, send, taskEvent } from './durable-host.ts'

const CHUNK_BYTES = 1_000

/** Opens a log that keeps about this many chunks. */
async function openLog(chunks: number): Promise<RunLog> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  return new RunLog(createBroker(engine).system, { maxAgeMs: 0, maxBytes: chunks * (CHUNK_BYTES + 100) })
}

/** Writes the chunks of a run, with one event each. */
async function write(log: RunLog, run: string, count: number, isOver: boolean): Promise<void> {
  const body = Buffer.alloc(CHUNK_BYTES, 'x')
  const common = { agentId: 'a', callerId: 'c', wire: '1.0', taskId: 't', body, more: false, continues: false } as const
  for (let number = 1; number <= count; number++) {
    const chunk: RunChunk = { ...common, number, first: number, end: isOver && number === count }
    expect(await log.append(run, chunk)).toBe(true)
  }
}

test.each([
  { kept: 30, of: 40, isOver: false },
  { kept: 100, of: 200, isOver: false },
  { kept: 100, of: 200, isOver: true },
  { kept: 5, of: 250, isOver: true },
])('retention - the first kept chunk is found: about $kept of $of chunks, over: $isOver', async (run) => {
  const log = await openLog(run.kept)
  const id = newRun()
  await write(log, id, run.of, run.isOver)
  // The end of a run is recorded after it is written.
  if (run.isOver) await until(async () => (await log.first(id)) !== undefined)
  const first = (await log.first(id))?.number ?? 0
  expect(run.of - first).toBeGreaterThan(run.kept / 2)
  expect(run.of - first).toBeLessThan(run.kept * 1.5)
  expect(await log.read(id, first - 1)).toBeUndefined()
  expect((await log.last(id))?.number).toBe(run.of)
  expect(await log.find(id, first - 1)).toBeUndefined()
  expect((await log.find(id, first + 1))?.number).toBe(first + 1)
})

test('retention - the last chunk that a reader has heard of leads to the first', async () => {
  const log = await openLog(5)
  const id = newRun()
  await write(log, id, 250, false)
  const first = (await log.first(id, 250))?.number ?? 0
  expect(first).toBeGreaterThan(240)
  expect(await log.read(id, first - 1)).toBeUndefined()
})

test('retention - a run without chunks has no first one', async () => {
  const log = await openLog(5)
  await write(log, newRun(), 100, true)
  expect(await log.first(newRun())).toBeUndefined()
})

test('retention - a new reader of a run whose beginning was removed gets the task in its place, and then the rest', async () => {
  const go = Promise.withResolvers<void>()
  const large = 'x'.repeat(300_000)
  const script: Script = async ({ body }, response) => {
    const { method } = JSON.parse(body) as { method: string }
    if (method === 'SendStreamingMessage') {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      await go.promise
      response.write(taskEvent('t1', { artifact: 'made' }))
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    } else if (method === 'GetTask') {
      json(response, '{"jsonrpc":"2.0","id":1,"result":{"id":"t1","status":{"state":"TASK_STATE_WORKING"}}}')
    } else json(response, JSON.stringify({ jsonrpc: '2.0', id: 1, result: { message: { parts: [{ text: large }] } } }))
  }
  const { host } = await openDurable(script, { logBytes: 1_048_576 })
  const message = send('go', 'm1', 1, 'SendStreamingMessage')
  const headers = { 'a2a-version': '1.0', 'content-type': 'application/json' }
  const begun = await fetch(`${host.base}/a2a/${DURABLE}`, { method: 'POST', headers, body: JSON.stringify(message) })
  for (let n = 0; n < 4; n++) await host.post(DURABLE, send('fill', `f${n}`), headers)
  go.resolve()
  expect(await begun.text()).toContain('TASK_STATE_COMPLETED')
  const { text } = await host.post(DURABLE, message, headers)
  expect(text).toContain('"signalbox.gap":{"from":1,"to":1}')
  expect(text.match(/^id: .*\.\d+$/gm)?.map((id) => id.split('.')[1])).toEqual(['1', '2', '3'])
  expect(text).toContain('TASK_STATE_COMPLETED')
})
