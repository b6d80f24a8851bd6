import { readdir, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

import { decodeText } from '@signalbox/broker-core'
import type { EmbeddedEngine, Recovery } from '@signalbox/engine-embedded'
import { openEmbeddedEngine, recoverStore } from '@signalbox/engine-embedded'

import { damage, PAGE, storeWith } from './support/damage.ts'
import { Folder, storedEvent, queued, receive, textsOf } from './support/store.ts'

interface Recovered {
  readonly engine: EmbeddedEngine
  readonly recovery: Recovery
}

async function recover(folder: Folder): Promise<Recovered> {
  const target = await Folder.make()
  const recovery = recoverStore(folder.path, join(target.path, 'new'))
  const engine = await openEmbeddedEngine({ path: join(target.path, 'new') })
  onTestFinished(async () => {
    await engine.close()
    await target[Symbol.asyncDispose]()
  })
  return { engine, recovery }
}

const numberOf = (text: string | undefined): number => Number(text?.split(' ')[2])

/** The numbers of the messages that are there, for a queue and the events store of its name. */
async function numbers({ engine }: Recovered, name: string): Promise<{ queue: number[]; eventsStore: number[] }> {
  const deliveries = await receive(engine, name)
  const events = await engine.eventsStore.read(name, { maxMessages: 1_000 })
  return {
    queue: textsOf(deliveries).map(numberOf),
    eventsStore: events.map(({ body }) => numberOf(decodeText(body))),
  }
}

const ALL = Array.from({ length: 40 }, (_, i) => i)

test('recover - data on intact pages is copied, and omitted data is reported', async () => {
  const folder = await storeWith('bad', 'good')
  await damage(folder, 'queue bad 10 ')
  await damage(folder, 'queue bad 30 ')
  await damage(folder, 'log bad 20 ')
  const before = await stat(folder.file('signalbox.db'))
  const recovered = await recover(folder)
  const { engine, recovery } = recovered
  expect(await numbers(recovered, 'good')).toEqual({ queue: ALL, eventsStore: ALL })
  const { queue, eventsStore } = await numbers(recovered, 'bad')
  expect(queue).toEqual(expect.arrayContaining([0, 20, 39]))
  expect(queue.length).toBeGreaterThan(30)
  expect(queue).not.toContain(10)
  expect(queue).not.toContain(30)
  expect(eventsStore).toEqual(expect.arrayContaining([0, 39]))
  expect(eventsStore).not.toContain(20)
  expect(recovery).toMatchObject({
    channels: 4,
    messages: 80 + queue.length + eventsStore.length,
    leftOut: [
      `queues "bad": ${40 - queue.length} of 40 messages`,
      `events_store "bad": ${40 - eventsStore.length} of 40 messages`,
    ],
  })
  expect((await stat(folder.file('signalbox.db'))).mtimeMs).toBe(before.mtimeMs)
  // The copy is a store like any other: counters, sequences, and what is sent to it.
  expect((await engine.channels.info('events_store', 'bad'))?.eventsStore).toMatchObject({
    entries: eventsStore.length,
    firstSequence: 1,
  })
  expect((await engine.eventsStore.append('bad', storedEvent('new'))).sequence).toBe(41)
  expect((await engine.queues.send('bad', queued('new'))).sequence).toBe(41)
})

test('recover - a list of channels that cannot be read leaves the messages under other names', async () => {
  const folder = await storeWith('bad')
  await damage(folder, 'events_storebad')
  const recovered = await recover(folder)
  const names = (await recovered.engine.channels.list()).map(({ name }) => name)
  expect(names.sort()).toEqual(['recovered.1', 'recovered.2'])
  expect(recovered.recovery.messages).toBe(80)
})

test('recover - keys, options and times of messages are kept', async () => {
  const folder = await Folder.make()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const before = await folder.open()
  await before.channels.create('events_store', 'log', { compacted: true, maxAgeMs: 1_000_000 })
  for (const text of ['1', '2'])
    await before.eventsStore.append('log', storedEvent(text, { key: 'k', tags: { a: 'b' } }))
  await before.queues.send('queue', queued('later', { delayMs: 60_000, expirationMs: 120_000 }))
  await before.close()
  const { engine, recovery } = await recover(folder)
  expect(recovery).toMatchObject({ messages: 2, leftOut: [] })
  expect(await engine.eventsStore.getLast('log', 'k')).toMatchObject({ sequence: 2, key: 'k', tags: { a: 'b' } })
  await engine.eventsStore.append('log', storedEvent('3', { key: 'k', expectLastOfKey: 2 }))
  expect(await engine.eventsStore.read('log', { maxMessages: 10 })).toHaveLength(1)
  expect((await engine.channels.info('queues', 'queue'))?.queue).toMatchObject({ delayed: 1, waiting: 0 })
})

test('recover - a truncated file is read up to its end', async () => {
  const folder = await storeWith('bad')
  const file = folder.file('signalbox.db')
  await truncate(file, (await stat(file)).size - 3 * PAGE)
  const { recovery } = await recover(folder)
  expect(recovery.messages).toBeGreaterThan(40)
  expect(recovery.leftOut.length).toBeGreaterThan(0)
})

test('recover - an open store, or a target folder with a store, is refused', async () => {
  await using folder = await Folder.make()
  await using target = await Folder.make()
  const engine = await folder.open()
  expect(() => recoverStore(folder.path, target.path)).toThrow(expect.objectContaining({ code: 'STORE_LOCKED' }))
  await engine.close()
  await writeFile(target.file('signalbox.db'), 'mine')
  expect(() => recoverStore(folder.path, target.path)).toThrow(expect.objectContaining({ code: 'RECOVERY_UNWRITABLE' }))
  expect(await readdir(target.path)).toEqual(['signalbox.db'])
})
