import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'

import { CLIENT, Folder, queued, receive } from './support/store.ts'

test('close - can be called again and again, and by await using', async () => {
  await using folder = await Folder.make()
  const engine = await folder.open()
  const closing = engine.close()
  expect(engine.close()).toBe(closing)
  await closing
  await engine[Symbol.asyncDispose]()
  expect((await engine.health()).ok).toBe(false)
})

test('close - sends that were under way are stored', async () => {
  await using folder = await Folder.make()
  const engine = await folder.open()
  const sends = Array.from({ length: 3_000 }, (_, i) => engine.queues.send('queue', queued(String(i))))
  await engine.close()
  const outcomes = await Promise.allSettled(sends)
  const stored = outcomes.filter(({ status }) => status === 'fulfilled').length
  expect(stored).toBe(3_000)
  await using again = await folder.open()
  expect((await again.channels.info('queues', 'queue'))?.queue?.waiting).toBe(stored)
})

test('close - messages on lease are there again, and the delivery counts', async () => {
  await using folder = await Folder.make()
  {
    await using engine = await folder.open()
    await engine.queues.send('queue', queued('x', { maxReceiveCount: 2, deadLetterQueue: 'dead' }))
    await receive(engine, 'queue')
  }
  await using engine = await folder.open()
  const [delivery] = await receive(engine, 'queue')
  expect(delivery?.message.receiveCount).toBe(2)
  await engine.queues.nack([delivery?.receipt ?? ''], CLIENT)
  const [dead] = await receive(engine, 'dead')
  expect(dead?.message.tags).toEqual({
    dlq_source: 'queue',
    dlq_reason: 'max_receive_count',
    dlq_receive_count: '2',
  })
})

test('close - an engine that is not closed does not keep its process alive', async () => {
  await using folder = await Folder.make()
  const script = `
    import { openEmbeddedEngine } from '@signalbox/engine-embedded'
    const engine = await openEmbeddedEngine({ path: ${JSON.stringify(folder.path)} })
    const message = { id: 'x', clientId: 'x', body: new Uint8Array(1), metadata: '', tags: {} }
    const options = { delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '' }
    await engine.queues.send('queue', { ...message, ...options })
    await engine.queues.send('queue', { ...message, ...options, delayMs: 60000, expirationMs: 90000 })
    await engine.queues.receive('queue', { maxMessages: 1, waitMs: 10, leaseMs: 60000, clientId: 'x' })
    await engine.eventsStore.subscribe('log', { from: 'new' }, {}, () => {})
    console.log('done')`
  const args = ['--conditions=@signalbox/source', '--input-type=module', '--eval', script]
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()))
  const [code] = await once(child, 'close')
  expect([printed.trim(), code]).toEqual(['done', 0])
})
