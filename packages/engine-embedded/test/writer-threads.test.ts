import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'

import { expect, onTestFinished, test } from 'vitest'

import { Folder, queued, receive, textsOf } from './support/store.ts'

/** Collects the threads that this process starts until the test ends. */
function startedThreads(): readonly Worker[] {
  const started: Worker[] = []
  const add = (worker: Worker): void => void started.push(worker)
  process.on('worker', add)
  onTestFinished(() => void process.off('worker', add))
  return started
}

test('writer thread - stores that are opened one after another share one thread, and no data', async () => {
  const started = startedThreads()
  for (const text of ['one', 'two', 'three']) {
    await using folder = await Folder.make()
    await using engine = await folder.open()
    await engine.queues.send('queue', queued(text))
    expect(textsOf(await receive(engine, 'queue'))).toEqual([text])
  }
  expect(started.length).toBeLessThanOrEqual(1)
})

test('writer thread - each open store has a thread; when they close, one thread is kept', async () => {
  const started = startedThreads()
  const ended: Promise<unknown>[] = []
  await using stack = new AsyncDisposableStack()
  const engines = []
  for (let i = 0; i < 3; i++) engines.push(await stack.use(await Folder.make()).open())
  expect(started.length).toBeGreaterThanOrEqual(2)
  for (const thread of started) ended.push(once(thread, 'exit'))
  for (const engine of engines) await engine.close()
  await Promise.any(ended)

  await using folder = await Folder.make()
  await using engine = await folder.open()
  await engine.queues.send('queue', queued('x'))
  expect(started.length).toBeLessThanOrEqual(3)
})
