import type { QueueDelivery } from '@signalbox/broker-core'
import { expect, test } from 'vitest'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { CLIENT, Folder, queued, receive, textsOf } from './support/store.ts'

const CHILD = fileURLToPath(new URL('./support/loader-child.ts', import.meta.url))

/** Lets a process write until it has confirmed so much, kills it, and returns the lines it printed. */
async function writeAndKill(path: string, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, ['--conditions=@signalbox/source', CHILD, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => {
    printed.push(line)
    if (printed.length === lines) child.kill('SIGKILL')
  })
  await once(reader, 'close')
  return printed
}

function told(lines: readonly string[], verb: string): string[] {
  return lines.filter((line) => line.startsWith(`${verb} `)).map((line) => line.slice(verb.length + 1))
}

test('durability - after kill -9 every confirmed message exists, and every acknowledged one is removed', async () => {
  await using folder = await Folder.make()
  const [sent, acked, appended] = [new Set<string>(), new Set<string>(), new Map<string, string>()]
  for (const lines of [200, 1_001, 2_500]) {
    const printed = await writeAndKill(folder.path, lines)
    expect(printed.length).toBeGreaterThanOrEqual(lines)
    // Each process counts anew; its confirmations are told apart by the round.
    for (const text of told(printed, 'sent')) sent.add(`${lines} ${text}`)
    for (const text of told(printed, 'acked')) acked.add(`${lines} ${text}`)
    for (const line of told(printed, 'appended')) {
      const [sequence = '', text = ''] = line.split(' ')
      expect(appended.has(sequence), 'a sequence comes once').toBe(false)
      appended.set(sequence, text)
    }

    await using engine = await folder.open()
    const [pid] = told(printed, 'ready')
    for (const text of told(printed, 'sent').slice(-200)) {
      const { duplicate } = await engine.queues.send('queue', queued(text, { deduplicationId: `${pid} ${text}` }))
      expect(duplicate, 'a confirmed send is recognized').toBe(true)
    }
    const acking = new Set(told(printed, 'acking').map((text) => `${lines} ${text}`))
    const left = new Set<string>()
    for (let deliveries: readonly QueueDelivery[]; (deliveries = await receive(engine, 'queue')).length > 0;) {
      for (const text of textsOf(deliveries)) left.add(`${lines} ${text}`)
      await engine.queues.ack(
        deliveries.map(({ receipt }) => receipt),
        'client',
      )
    }
    // Whether an ack that was under way came to be stored, nobody was told.
    expect(
      [...sent].filter((text) => !acking.has(text) && !left.has(text)),
      'confirmed and lost',
    ).toEqual([])
    expect(
      [...acked].filter((text) => left.has(text)),
      'acknowledged and back',
    ).toEqual([])
    sent.clear()
    acked.clear()

    const entries = await engine.eventsStore.read('log', { maxMessages: 100_000 })
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, i) => i + 1))
    const stored = new Map(entries.map(({ sequence, body }) => [String(sequence), Buffer.from(body).toString()]))
    for (const [sequence, text] of appended) expect(stored.get(sequence)).toBe(text)
    const state = await engine.channels.info('events_store', 'log')
    expect(state?.eventsStore?.entries).toBe(entries.length)
  }
}, 120_000)

test('close - close is idempotent and works with await using', async () => {
  await using folder = await Folder.make()
  const engine = await folder.open()
  const closing = engine.close()
  expect(engine.close()).toBe(closing)
  await closing
  await engine[Symbol.asyncDispose]()
  expect((await engine.health()).ok).toBe(false)
})

test('close - sends in progress are stored', async () => {
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

test('close - leased messages are available again, and their delivery counts as a receive', async () => {
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
