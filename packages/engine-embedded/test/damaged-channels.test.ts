import { readFile, writeFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import Database from 'better-sqlite3'

import { isBrokerError } from '@signalbox/broker-core'
import { eventually } from '@signalbox/testkit/until'
import type { EmbeddedEngine, EmbeddedEngineProblem } from '@signalbox/engine-embedded'

// The seam for faults is not part of the package's surface.
import { openEngine } from '../src/engine.ts'
import { damage, PAGE, storeWith } from './support/damage.ts'
import { CLIENT, Folder, storedEvent, queued, receive, textsOf } from './support/store.ts'

interface Opened {
  readonly engine: EmbeddedEngine
  readonly problems: EmbeddedEngineProblem[]
}

async function open(folder: Folder, options: Parameters<Folder['open']>[0] = {}): Promise<Opened> {
  const problems: EmbeddedEngineProblem[] = []
  const engine = await folder.open({ ...options, onProblem: (problem) => problems.push(problem) })
  onTestFinished(() => engine.close())
  return { engine, problems }
}

async function expectDamaged({ engine, problems }: Opened, type: string, name: string): Promise<void> {
  const channels = [{ type, name }]
  expect(problems).toEqual([
    expect.objectContaining({ kind: 'damaged', channels, message: expect.stringContaining(name) }),
  ])
  const { ok, checks } = await engine.health()
  expect(ok).toBe(false)
  expect(checks.find((check) => check.name === 'store')).toMatchObject({
    ok: false,
    detail: expect.stringContaining(`${type} "${name}"`),
  })
}

async function expectWorks(engine: EmbeddedEngine, name: string): Promise<void> {
  await engine.queues.send(name, queued('new'))
  const deliveries = await receive(engine, name)
  expect(textsOf(deliveries)).toHaveLength(41)
  const receipts = deliveries.map(({ receipt }) => receipt)
  expect(await engine.queues.ack(receipts, CLIENT)).toEqual({ settled: 41, lost: [] })
  await engine.eventsStore.append(name, storedEvent('new'))
  expect(await engine.eventsStore.read(name, { maxMessages: 100 })).toHaveLength(41)
}

const DAMAGED = { code: 'ENGINE_UNAVAILABLE', message: expect.stringContaining('damaged') }

test('damaged store - an unreadable queue is reported once and accepts nothing more, and the others continue', async () => {
  const folder = await storeWith('bad', 'good')
  await damage(folder, 'queue bad 20 ')
  const opened = await open(folder)
  const { engine } = opened
  expect((await engine.health()).ok).toBe(true)
  for (let i = 0; i < 3; i++) await expect(receive(engine, 'bad')).rejects.toMatchObject(DAMAGED)
  await expect(receive(engine, 'bad', { waitMs: 60_000 })).rejects.toMatchObject(DAMAGED)
  await expect(engine.queues.send('bad', queued('lost'))).rejects.toMatchObject(DAMAGED)
  await expectDamaged(opened, 'queues', 'bad')
  await expectWorks(engine, 'good')
  await engine.eventsStore.append('bad', storedEvent('another channel of that name'))
  expect(opened.problems).toHaveLength(1)
})

test('damaged store - an events store that cannot be read ends its subscriptions with the reason', async () => {
  const folder = await storeWith('bad', 'good')
  await damage(folder, 'log bad 20 ')
  const opened = await open(folder)
  const { engine } = opened
  for (const group of [undefined, 'group']) {
    const seen: number[] = []
    const options = group === undefined ? {} : { group }
    const subscription = await engine.eventsStore.subscribe('bad', { from: 'first' }, options, ({ sequence }) => {
      seen.push(sequence)
    })
    expect(await subscription.closed).toMatchObject(DAMAGED)
  }
  await expect(engine.eventsStore.append('bad', storedEvent('lost'))).rejects.toMatchObject(DAMAGED)
  await expectDamaged(opened, 'events_store', 'bad')
  await expectWorks(engine, 'good')
})

test('damaged store - damage found by a write affects only its channel', async () => {
  const folder = await storeWith('bad', 'good')
  await damage(folder, 'queue bad 20 ')
  const opened = await open(folder)
  const { engine } = opened
  const sent = Array.from({ length: 20 }, (_, i) => engine.queues.send('other', queued(String(i))))
  const [purged, ...others] = await Promise.allSettled([engine.queues.purge('bad'), ...sent])
  expect(purged).toMatchObject({ status: 'rejected', reason: DAMAGED })
  expect(others.every(({ status }) => status === 'fulfilled')).toBe(true)
  await expectDamaged(opened, 'queues', 'bad')
  await expectWorks(engine, 'good')
})

test('damaged store - retention continues for the other events stores', async () => {
  const folder = await storeWith('bad', 'good')
  await damage(folder, 'log bad 20 ')
  const opened = await open(folder, { eventsStoreMaxAgeMs: 1 })
  const { engine } = opened
  await eventually(async () => {
    expect((await engine.channels.info('events_store', 'good'))?.eventsStore?.entries).toBe(0)
    expect(opened.problems).toHaveLength(1)
  })
  await expectDamaged(opened, 'events_store', 'bad')
})

test('damaged store - a message whose dead-letter queue is damaged stays where it is', async () => {
  const folder = await storeWith('work', 'bad')
  await damage(folder, 'queue bad 39 ')
  const opened = await open(folder)
  const { engine } = opened
  await engine.queues.purge('work')
  await engine.queues.send('work', queued('poison', { maxReceiveCount: 1, deadLetterQueue: 'bad' }))
  const [delivery] = await receive(engine, 'work', { leaseMs: 1 })
  expect(delivery).toBeDefined()
  const [again] = await receive(engine, 'work', { waitMs: 20_000 })
  expect(textsOf(again ? [again] : [])).toEqual(['poison'])
  await expectDamaged(opened, 'queues', 'bad')
  expect(await engine.queues.ack([again?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
})

test('damaged store - leases of a damaged queue end, and closing takes no longer', async () => {
  const folder = await storeWith('bad')
  await damage(folder, 'queue bad 20 ')
  const { engine } = await open(folder)
  const held = await receive(engine, 'bad', { maxMessages: 5 }).catch(() => [])
  await expect(engine.queues.purge('bad')).rejects.toMatchObject(DAMAGED)
  await engine.queues.nack(
    held.map(({ receipt }) => receipt),
    CLIENT,
  )
  await engine.close()
  const again = await open(folder)
  await expect(receive(again.engine, 'bad')).rejects.toMatchObject(DAMAGED)
})

/** What callers, timers and sweeps do with a store; every call may fail, and only as it should. Returns what was reported. */
async function useAll({ engine, problems }: Opened): Promise<EmbeddedEngineProblem['kind'][]> {
  const calls = await Promise.allSettled([
    engine.queues.send('new', queued('x')),
    engine.queues.send('new', queued('x', { delayMs: 1, expirationMs: 2, deduplicationId: 'id' })),
    engine.eventsStore.append('new', storedEvent('x', { key: 'k', deduplicationId: 'id' })),
    engine.channels.delete('queues', 'good'),
    receive(engine, 'bad').then((deliveries) =>
      engine.queues.nack(
        deliveries.map(({ receipt }) => receipt),
        CLIENT,
      ),
    ),
    engine.queues.peek('bad', { maxMessages: 10 }),
    engine.eventsStore.getLast('bad', 'k'),
    engine.queues.purge('bad'),
  ])
  const failures = calls.flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []))
  expect(failures.filter((failure) => !isBrokerError(failure, 'ENGINE_UNAVAILABLE'))).toEqual([])
  await eventually(async () => expect((await engine.health()).ok).toBe(false))
  return [...new Set(problems.map(({ kind }) => kind))]
}

/** Damages the first page of a table or an index in a copy of a store. */
async function withDamagedRoot(folder: Folder, name: string): Promise<Folder> {
  const file = folder.file('signalbox.db')
  const database = new Database(file, { readonly: true })
  const root = database
    .prepare<[string], { page: number }>('SELECT rootpage AS page FROM sqlite_schema WHERE name = ?')
    .get(name)
  database.close()
  const copy = await Folder.make()
  onTestFinished(() => copy[Symbol.asyncDispose]())
  const bytes = await readFile(file)
  const page = (root?.page ?? 0) - 1
  expect(page).toBeGreaterThan(0)
  await writeFile(copy.file('signalbox.db'), bytes.fill(0xab, page * PAGE, (page + 1) * PAGE))
  return copy
}

test('damaged store - damage to shared data is reported, and ends no channel', async () => {
  const folder = await storeWith('bad', 'good')
  const names = ['queue_messages', 'log_entries', 'delayed_messages_due', 'queue_messages_expiry', 'deduplication_age']
  const reported = await Promise.all(names.map(async (name) => useAll(await open(await withDamagedRoot(folder, name)))))
  expect(reported).toEqual(names.map(() => ['damaged']))
})

test('damaged store - a list of deleted channels that cannot be read is refused when the store is opened', async () => {
  const folder = await withDamagedRoot(await storeWith('bad'), 'garbage')
  await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_DAMAGED' })
})

test('damaged store - a list of channels that cannot be read is refused when the store is opened', async () => {
  const folder = await storeWith('bad')
  await damage(folder, 'events_storebad')
  await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_DAMAGED' })
})

/** An engine whose commits can be made to fail, with the kinds of the problems that it reports. */
async function openFailing(folder: Folder, limit: number) {
  const faults = new Int32Array(new SharedArrayBuffer(4))
  const problems: EmbeddedEngineProblem['kind'][] = []
  const options = { path: folder.path, onProblem: ({ kind }: EmbeddedEngineProblem) => void problems.push(kind) }
  const engine = await openEngine(options, faults, { firstMs: 1, lastMs: 4, limit, steadyMs: 60_000 })
  return { engine, faults, problems }
}

test('failed store - a store that fails repeatedly stays closed, with a report', async () => {
  await using folder = await Folder.make()
  const { engine, faults, problems } = await openFailing(folder, 3)
  await using _ = engine
  Atomics.store(faults, 0, 2)
  await eventually(async () => {
    await expect(engine.queues.send('queue', queued('x'))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    expect((await engine.health()).checks[0]?.detail).toContain('stays closed')
  }, 50_000)
  expect(problems).toEqual(['failed', 'healed', 'failed', 'healed', 'failed', 'healed', 'failed'])
  Atomics.store(faults, 0, 0)
  await expect(engine.queues.send('queue', queued('x'))).rejects.toMatchObject({
    details: { reason: expect.stringContaining('stays closed') },
  })
}, 60_000)

test('failed store - a store that fails as soon as it is open again is not reported as open', async () => {
  await using folder = await Folder.make()
  const { engine, faults, problems } = await openFailing(folder, 1)
  await using _ = engine
  Atomics.store(faults, 0, 2)
  await expect(engine.queues.send('queue', queued('x'))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  // Sent until one waits for the thread that opens the store again.
  const endsSoon = async (): Promise<boolean> => {
    const outcome = { ended: false }
    const end = (): void => void (outcome.ended = true)
    engine.queues.send('queue', queued('x')).then(end, end)
    for (let turns = 0; turns < 10; turns++) await nextTurn()
    return outcome.ended
  }
  while (problems.length < 3 && (await endsSoon()));
  // Meanwhile the thread opens the store and fails, and both messages arrive together.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
  await expect.poll(async () => (await engine.health()).checks[0]?.detail).toContain('stays closed')
  expect(problems).toEqual(['failed', 'healed', 'failed'])
})
