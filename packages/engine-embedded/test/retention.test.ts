import type { RetentionSettings, SettingsEntry } from '@signalbox/broker-core'
import type { EmbeddedEngine } from '@signalbox/engine-embedded'
import { eventually } from '@signalbox/testkit/until'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'

import { openEngine } from '../src/engine.ts'
import { CLIENT, Folder, queued, receive, storedEvent, textsOf } from './support/store.ts'

const HOUR = 3_600_000
const START = 1_800_000_000_000

const KEEP_ALL: RetentionSettings = {
  max_age_seconds: 0,
  max_messages: 0,
  max_bytes: 0,
  on_expiry: 'drop',
  compact: false,
}

function queueSettings(match: string, members: Partial<SettingsEntry>): SettingsEntry {
  return { type: 'queues', match, source: 'api', ...members }
}

function hours(count: number, more: Partial<RetentionSettings> = {}): RetentionSettings {
  return { ...KEEP_ALL, max_age_seconds: count * 3_600, ...more }
}

function batch(length: number, expirationMs: number) {
  return Array.from({ length }, () => queued('x', { expirationMs }))
}

function window(seconds: number) {
  return { deduplication: { window_seconds: seconds } }
}

/** Sends a message again; returns whether it was recognized. */
async function repeat(engine: EmbeddedEngine, queue: string): Promise<boolean> {
  return (await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))).duplicate
}

async function counts(engine: EmbeddedEngine, queue: string) {
  const { waiting, expired, deadLettered } = (await engine.channels.info('queues', queue))?.queue ?? {}
  return { waiting, expired, deadLettered }
}

test('retention - the age counts from the send, over restarts and changes of the settings', async () => {
  await using folder = await Folder.make()
  let now = START
  {
    await using engine = await folder.open({ now: () => now })
    await engine.queues.send('jobs', queued('first'))
    await engine.queues.send('jobs', queued('own', { expirationMs: 10 * HOUR }))
    await engine.queues.send('jobs', queued('delayed', { delayMs: HOUR }))
    now += HOUR
    await engine.queues.send('jobs', queued('second'))
  }
  await using engine = await folder.open({ now: () => now })
  engine.settings.replace([queueSettings('jobs', { retention: hours(2) })])
  now = START + 2 * HOUR - 1
  expect(await engine.queues.peek('jobs', { maxMessages: 9 })).toHaveLength(4)
  expect(await engine.queues.oldestWaiting('jobs')).toBe(START)
  now += 1
  expect((await engine.queues.peek('jobs', { maxMessages: 9 })).map(({ expiresAt }) => expiresAt)).toEqual([
    START + 10 * HOUR,
    0,
  ])
  await eventually(async () => expect(await counts(engine, 'jobs')).toMatchObject({ waiting: 2, expired: 2 }))
  engine.settings.replace([queueSettings('jobs', { retention: hours(4) })])
  now = START + 4 * HOUR
  expect(textsOf(await receive(engine, 'jobs'))).toEqual(['own', 'second'])
})

test('retention - messages that are leased or delayed past the age end when they come back', async () => {
  await using folder = await Folder.make()
  let now = START
  await using engine = await folder.open({ now: () => now })
  engine.settings.replace([queueSettings('jobs', { retention: hours(1, { on_expiry: 'dead_letter' }) })])
  await engine.queues.send('jobs', queued('leased', { deadLetterQueue: 'dead', maxReceiveCount: 1 }))
  await engine.queues.send('jobs', queued('delayed', { deadLetterQueue: 'dead', delayMs: 2 * HOUR }))
  const [leased] = await receive(engine, 'jobs')
  now += HOUR
  expect(await engine.queues.nack([leased?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
  now += HOUR
  await eventually(async () => expect(await counts(engine, 'dead')).toMatchObject({ waiting: 2 }))
  const reasons = (await engine.queues.peek('dead', { maxMessages: 9 })).map(({ tags }) => tags['dlq_reason'])
  expect(reasons).toEqual(['expired', 'expired'])
  expect(await counts(engine, 'jobs')).toEqual({ waiting: 0, expired: 0, deadLettered: 2 })
})

test('retention - the age of a dead letter counts from its move', async () => {
  await using folder = await Folder.make()
  let now = START
  await using engine = await folder.open({ now: () => now })
  engine.settings.replace([queueSettings('*', { retention: hours(1, { on_expiry: 'dead_letter' }) })])
  await engine.queues.send('jobs', queued('spent', { deadLetterQueue: 'dead', maxReceiveCount: 1 }))
  await engine.queues.send('jobs', queued('expired', { deadLetterQueue: 'dead' }))
  const [spent] = await receive(engine, 'jobs', { maxMessages: 1 })
  now += HOUR - 1
  await engine.queues.nack([spent?.receipt ?? ''], CLIENT)
  now += 1
  await eventually(async () => expect(await counts(engine, 'jobs')).toMatchObject({ waiting: 0 }))
  now += HOUR - 2
  expect(await engine.queues.peek('dead', { maxMessages: 9 })).toHaveLength(2)
  now += 1
  expect((await engine.queues.peek('dead', { maxMessages: 9 })).map(({ tags }) => tags['dlq_reason'])).toEqual([
    'expired',
  ])
  now += 1
  await eventually(async () => expect(await counts(engine, 'dead')).toMatchObject({ waiting: 0, expired: 2 }))
})

test('retention - many expired messages behind ones with a longer expiration are all found', async () => {
  await using folder = await Folder.make()
  let now = START
  await using engine = await folder.open({ now: () => now })
  await engine.queues.sendBatch('jobs', batch(2_500, 10 * HOUR))
  await engine.queues.sendBatch('jobs', batch(2_500, 0))
  now += HOUR
  engine.settings.replace([queueSettings('jobs', { retention: hours(1) })])
  await eventually(
    async () => expect(await counts(engine, 'jobs')).toMatchObject({ waiting: 2_500, expired: 2_500 }),
    20_000,
  )
})

test('retention - the limits apply after the store failed and was opened again', async () => {
  await using folder = await Folder.make()
  const faults = new Int32Array(new SharedArrayBuffer(4))
  const retries = { firstMs: 10, lastMs: 10, limit: 10, steadyMs: 60_000 }
  await using engine = await openEngine({ path: folder.path }, faults, retries)
  engine.settings.replace([queueSettings('jobs', { retention: { ...KEEP_ALL, max_messages: 1 } })])
  await engine.queues.send('jobs', queued('x'))
  Atomics.store(faults, 0, 2)
  await expect(engine.queues.send('other', queued('x'))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  Atomics.store(faults, 0, 0)
  await eventually(async () => void (await engine.queues.send('other', queued('x'))), 20_000)
  await expect(engine.queues.send('jobs', queued('y'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
})

test('C5 - deduplication - the window of each channel holds over a restart, and ids are removed after it', async () => {
  await using folder = await Folder.make()
  let now = START
  const settings: SettingsEntry[] = [
    queueSettings('long', window(3_600)),
    queueSettings('short', window(10)),
    { type: 'events_store', match: 'long', source: 'api', ...window(86_400) },
  ]
  const ids = (): unknown => {
    const database = new Database(folder.file('signalbox.db'), { readonly: true })
    const count = database.prepare('SELECT count(*) FROM deduplication').pluck().get()
    database.close()
    return count
  }
  {
    await using engine = await folder.open({ now: () => now })
    engine.settings.replace(settings)
    for (const queue of ['long', 'short', 'default']) expect(await repeat(engine, queue)).toBe(false)
    await engine.eventsStore.append('long', storedEvent('x', { deduplicationId: 'a' }))
    now += 9_999
    for (const queue of ['long', 'short', 'default']) expect(await repeat(engine, queue)).toBe(true)
    now += 1
    expect(await repeat(engine, 'short')).toBe(false)
  }
  await using engine = await folder.open({ now: () => now })
  engine.settings.replace(settings)
  now = START + HOUR - 1
  await eventually(() => expect(ids()).toBe(2))
  expect(await repeat(engine, 'long')).toBe(true)
  expect(await repeat(engine, 'default')).toBe(false)
  now += 1
  expect(await repeat(engine, 'long')).toBe(false)
  now = START + 24 * HOUR - 1
  const again = await engine.eventsStore.append('long', storedEvent('y', { deduplicationId: 'a' }))
  expect(again).toMatchObject({ duplicate: true, sequence: 1 })
  engine.settings.replace([])
  await eventually(() => expect(ids()).toBe(0))
})
