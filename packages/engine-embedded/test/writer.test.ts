import type { CommitInfo } from '@signalbox/engine-embedded'
import { countTicks } from '@signalbox/testkit/count-ticks'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'
import { once } from 'node:events'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'

import type { EntryRow, QueueRow } from '../src/store/message-rows.ts'
import { isFatal } from '../src/store/sqlite.ts'
import type { Operation, OperationRefusal, Result } from '../src/writer/operations.ts'
import { packOperations, packResults, unpackOperations, unpackResults } from '../src/writer/thread-messages.ts'
import { WalFile } from '../src/writer/wal.ts'
import { CLIENT, Folder, queued, receive, storedEvent, textsOf } from './support/store.ts'

const run = promisify(execFile)

/** Prints the niceness of a process and of its writer thread, while a store is open. */
const PRIORITIES = `
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
const engine = await openEmbeddedEngine({ path: process.argv[1] })
const isWriter = (id) => readFileSync('/proc/self/task/' + id + '/comm', 'utf8').startsWith('signalbox-writ')
const writers = readdirSync('/proc/self/task').filter(isWriter).map((id) => getPriority(Number(id)))
console.log(JSON.stringify([getPriority(), ...writers]))
await engine.close()
`

test.runIf(existsSync('/usr/bin/taskset')).each([
  { cores: '0', niceness: 10 },
  { cores: `0-${availableParallelism() - 1}`, niceness: availableParallelism() > 1 ? 0 : 10 },
])('writer - on the cores $cores its thread yields to the event loop by $niceness', async ({ cores, niceness }) => {
  const args = ['--conditions=@signalbox/source', '--input-type=module', '--eval', PRIORITIES, testFolder()]
  const { stdout } = await run('/usr/bin/taskset', ['-c', cores, process.execPath, ...args], {
    cwd: import.meta.dirname,
  })
  const [own, ...writers] = JSON.parse(stdout) as readonly [number, ...number[]]
  expect(writers).toEqual([Math.min(19, own + niceness)])
})

test('group commit - operations that come together share a sync', async () => {
  await using folder = await Folder.make()
  const commits: CommitInfo[] = []
  await using engine = await folder.open({ onCommit: (commit) => commits.push(commit) })
  await engine.queues.send('queue', queued('first'))
  commits.length = 0
  await Promise.all(Array.from({ length: 500 }, (_, i) => engine.queues.send('queue', queued(String(i)))))
  const operations = commits.reduce((sum, commit) => sum + commit.operations, 0)
  // A sweep may come between.
  expect(operations).toBeGreaterThanOrEqual(500)
  expect(commits.length).toBeLessThan(50)
  for (const { bytes, durationMs } of commits) {
    expect(bytes).toBeGreaterThan(0)
    expect(durationMs).toBeGreaterThan(0)
  }
})

test('group commit - sends of several callbacks in one event-loop tick share a sync', async () => {
  await using folder = await Folder.make()
  const commits: CommitInfo[] = []
  await using engine = await folder.open({ onCommit: (commit) => commits.push(commit) })
  await engine.queues.send('queue', queued('first'))
  commits.length = 0
  // As requests that arrive together do, each at a socket of its own.
  const sends = await new Promise<Promise<unknown>[]>((resolve) => {
    const begun: Promise<unknown>[] = []
    for (const text of ['a', 'b', 'c']) setImmediate(() => begun.push(engine.queues.send('queue', queued(text))))
    setImmediate(() => resolve(begun))
  })
  await Promise.all(sends)
  expect(commits).toHaveLength(1)
  // A sweep may come between.
  expect(commits[0]?.operations).toBeGreaterThanOrEqual(3)
})

test('group commit - sequences follow the order of the calls, in every group', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const results = await Promise.all(
    Array.from({ length: 1_000 }, (_, i) => engine.queues.send('queue', queued(String(i)))),
  )
  expect(results.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1))
})

test('group commit - the order of the calls holds for large bodies too, and callers keep their bodies', async () => {
  await using folder = await Folder.make()
  const sizes = [300_000, 5, 2_000_000, 20_000, 5, 300_000, 0]
  const bodies = sizes.map((size, i) => Buffer.alloc(size, String(i)))
  {
    await using engine = await folder.open()
    const sends = bodies.map((body, i) => engine.queues.send('queue', { ...queued(''), id: String(i), body }))
    const appends = bodies.map((body, i) =>
      engine.eventsStore.append('log', { ...storedEvent(''), id: String(i), body }),
    )
    expect((await Promise.all(sends)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect((await Promise.all(appends)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(bodies.map(({ byteLength }) => byteLength)).toEqual(sizes)
    // The engine closes while these are on their way.
    const last = [300_000, 1].map((size) =>
      engine.queues.send('queue', { ...queued(''), body: Buffer.alloc(size, 'z') }),
    )
    await engine.close()
    expect((await Promise.all(last)).map(({ sequence }) => sequence)).toEqual([8, 9])
  }
  await using engine = await folder.open()
  const received = await receive(engine, 'queue', { maxMessages: 10 })
  const want = [...bodies, Buffer.alloc(300_000, 'z'), Buffer.alloc(1, 'z')]
  expect(received.map(({ message }, i) => want[i]?.equals(message.body))).toEqual(want.map(() => true))
})

test('group commit - more large bodies than may wait for the thread are all stored', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const body = Buffer.alloc(3_000_000, 'x')
  const sends = Array.from({ length: 30 }, (_, i) => engine.queues.send(`queue.${i % 3}`, { ...queued(''), body }))
  const sequences = (await Promise.all(sends)).map(({ sequence }) => sequence)
  expect(sequences).toEqual(Array.from({ length: 30 }, (_, i) => Math.floor(i / 3) + 1))
})

test('group commit - callers of one commit continue in their order, and share no long tick of the event loop', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const calls = Array.from({ length: 100 }, (_, call) => call)
  const tick = countTicks()
  const receivers: { readonly call: number; readonly tick: number }[] = []
  const senders: typeof receivers = []
  const continues = (call: number, list: typeof receivers): void => {
    list.push({ call, tick: tick() })
    for (const end = performance.now() + 1; performance.now() < end;);
  }
  const received = calls.map((call) =>
    receive(engine, 'queue', { maxMessages: 1, waitMs: 10_000 }).then(() => continues(call, receivers)),
  )
  const sent = calls.map((call) => engine.queues.send('queue', queued('')).then(() => continues(call, senders)))
  await Promise.all([...received, ...sent])
  for (const list of [receivers, senders]) {
    expect(list.map(({ call }) => call)).toEqual(calls)
    const perTick = Map.groupBy(list, (each) => each.tick)
    expect(Math.max(...Array.from(perTick.values(), (some) => some.length))).toBeLessThanOrEqual(36)
  }
})

test('group commit - an operation that is refused fails alone and leaves no gap', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open({ queueMaxBytes: 1_000 })
  const outcomes = await Promise.allSettled([
    engine.queues.send('a', queued('1')),
    engine.queues.send('a', queued('x'.repeat(2_000))),
    engine.queues.send('a', queued('2')),
    engine.eventsStore.append('log', storedEvent('1', { key: 'k', expectLastOfKey: 7 })),
    engine.eventsStore.append('log', storedEvent('2', { key: 'k', expectLastOfKey: 0 })),
    engine.queues.sendBatch('b', [queued('1'), queued('x'.repeat(2_000))]),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
  ])
  expect(outcomes[1]).toMatchObject({ reason: { code: 'QUEUE_FULL' } })
  expect(outcomes[3]).toMatchObject({ reason: { code: 'CONFLICT', details: { key: 'k', last: 0 } } })
  expect(textsOf(await receive(engine, 'a'))).toEqual(['1', '2'])
  const deliveries = await engine.queues.peek('a', { maxMessages: 10 })
  expect(deliveries).toEqual([])
  expect((await engine.eventsStore.read('log', { maxMessages: 10 })).map(({ sequence }) => sequence)).toEqual([1])
  expect(await engine.channels.info('queues', 'b')).toBeUndefined()
})

test('group commit - when SQLite rejects an operation, the others of its group are stored', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  // The types forbid this call. It stands for any error of SQLite while a group is written. The
  // message is large, because small ones are packed, and cannot be invalid.
  const broken: string = JSON.parse('null')
  const outcomes = await Promise.allSettled([
    engine.queues.send('queue', queued('before')),
    engine.queues.sendBatch('queue', [queued('good'), queued('bad'.repeat(10_000), { clientId: broken })]),
    engine.queues.send('queue', queued('after')),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(outcomes[1]).toMatchObject({ reason: { code: 'ENGINE_UNAVAILABLE' } })
  const deliveries = await receive(engine, 'queue')
  expect(deliveries.map(({ message }) => message.sequence)).toEqual([1, 2])
  const state = await engine.channels.info('queues', 'queue')
  expect(state).toMatchObject({ incoming: 2, queue: { inFlight: 2, bytes: 'before'.length + 'after'.length } })
})

test('group commit - messages of every shape, and acks in any order, leave the correct data on disk', async () => {
  await using folder = await Folder.make()
  const sent = Array.from({ length: 43 }, (_, i) =>
    queued(`text ${i}`, i % 5 === 4 ? { metadata: 'm', tags: { i: String(i) }, maxReceiveCount: 3 } : {}),
  )
  const stays = new Set([1, 8, 9, 24, 43])
  {
    await using engine = await folder.open()
    await Promise.all(sent.map((message, i) => engine.queues.send(i % 2 === 0 ? 'even' : 'odd', message)))
    await Promise.all(sent.map((message) => engine.queues.send('all', message)))
    const leases = await receive(engine, 'all')
    const done = leases.filter(({ message }) => !stays.has(message.sequence)).toReversed()
    await Promise.all(done.map(({ receipt }) => engine.queues.ack([receipt], CLIENT)))
  }
  await using engine = await folder.open()
  const left = await receive(engine, 'all')
  expect(left.map(({ message }) => message.sequence)).toEqual([...stays])
  for (const { message } of left) {
    const { id, body, metadata, tags, maxReceiveCount } = message
    expect({ id, body, metadata, tags, maxReceiveCount }).toEqual(
      (({ id, body, metadata, tags, maxReceiveCount }) => ({ id, body, metadata, tags, maxReceiveCount }))(
        sent[message.sequence - 1] ?? queued(''),
      ),
    )
  }
  expect(textsOf(await receive(engine, 'odd'))).toEqual(Array.from({ length: 21 }, (_, i) => `text ${2 * i + 1}`))
  expect(await engine.queues.purge('even')).toBe(22)
  await engine.queues.ack(
    left.map(({ receipt }) => receipt),
    CLIENT,
  )
  const all = await engine.channels.info('queues', 'all')
  expect(all?.queue).toMatchObject({ waiting: 0, inFlight: 0, bytes: 0 })
})

function send(channel: string, id: string, body: Uint8Array, more: Partial<QueueRow> = {}) {
  const message: QueueRow = {
    id,
    clientId: 'client',
    timestamp: 1_000,
    size: body.byteLength,
    metadata: '',
    tags: '',
    expiresAt: 2_000,
    maxReceiveCount: 3,
    deadLetterQueue: 'dead',
    body,
    dueAt: 0,
    deduplicationId: undefined,
    ...more,
  }
  return { kind: 'send', channel, now: 1_000, messages: [message] } satisfies Operation
}

function append(channel: string, id: string, body: Uint8Array, more: Partial<EntryRow> = {}) {
  const entry: EntryRow = {
    id,
    clientId: 'client',
    size: body.byteLength,
    metadata: 'm',
    tags: '',
    key: id === '1' ? null : 'key',
    tombstone: 0,
    body,
    expectLastOfKey: undefined,
    deduplicationId: undefined,
    ...more,
  }
  return { kind: 'append', channel, now: 1_000, entry } satisfies Operation
}

const bytes = (length: number, value: number): Uint8Array => new Uint8Array(length).fill(value)

test('post - operations of all sizes and kinds arrive as they were, in their order', () => {
  const batch = send('a', '6', bytes(1, 6))
  const operations: Operation[] = [
    send('a', '1', bytes(3, 1)),
    { kind: 'settle', channel: 'a', channelId: 7, sequences: [2 ** 39] },
    send('b', '2', bytes(0, 0), { metadata: 'm', dueAt: 5_000 }),
    { kind: 'sweep', now: 5 },
    { kind: 'settle', channel: 'b', channelId: 8, sequences: [1] },
    { kind: 'settle', channel: 'b', channelId: 8, sequences: [1, 2] },
    send('a', '3', bytes(100_000, 3)),
    append('a', '1', bytes(3, 1)),
    append('b', '2', bytes(0, 0), { expectLastOfKey: 0 }),
    append('b', '3', bytes(100_000, 3), { expectLastOfKey: 2 ** 39 }),
    append('b', '4', bytes(4, 4), { deduplicationId: 'once' }),
    append('b', '5', bytes(5, 5), { expectLastOfKey: 2 ** 39 }),
    { ...batch, messages: batch.messages.map((message) => ({ ...message, deduplicationId: 'once' })) },
    { ...batch, messages: [...batch.messages, ...batch.messages] },
    { ...batch, messages: [...batch.messages, ...send('a', '7', bytes(100_000, 7)).messages] },
    send('a', '4', bytes(2, 4)),
    { kind: 'probe' },
  ]

  expect(unpackOperations(structuredClone(packOperations(operations)))).toEqual(operations)
})

test('post - results arrive as they were, in their order', () => {
  const refusal: OperationRefusal = { kind: 'refused', code: 'QUEUE_FULL', message: 'full', details: { limit: 1 } }
  const results: (Result | OperationRefusal)[] = [
    { kind: 'send', channelId: 2 ** 23 - 1, sequences: [2 ** 40 - 1], duplicates: undefined },
    { kind: 'settle' },
    refusal,
    { kind: 'send', channelId: 1, sequences: [1, 2], duplicates: undefined },
    { kind: 'send', channelId: 1, sequences: [1], duplicates: ['first'] },
    { kind: 'settle' },
    { kind: 'send', channelId: 1, sequences: [3], duplicates: undefined },
    { kind: 'append', channelId: 3, sequence: 2 ** 40 - 1, timestamp: 2 ** 43, duplicateOf: undefined },
    { kind: 'append', channelId: 3, sequence: 5, timestamp: 1, duplicateOf: 'first' },
    { kind: 'append', channelId: 3, sequence: 6, timestamp: 0, duplicateOf: undefined },
    { kind: 'settle' },
  ]

  expect(unpackResults(structuredClone(packResults(results)))).toEqual(results)
})

test('WAL - a sync that works throws nothing', () => {
  const wal = new WalFile(testFile('frames'))
  expect(() => wal.sync()).not.toThrow()
  wal.close()
})

// A device that takes writes and knows no sync: the error of a real call, as a failing disk gives one.
test.runIf(process.platform === 'linux')(
  'WAL - a failed sync closes the connection, like a failed sync of SQLite',
  () => {
    const wal = new WalFile('/dev/null')
    let thrown: unknown
    try {
      wal.sync()
    } catch (error) {
      thrown = error
    }
    wal.close()
    expect(thrown).toMatchObject({ code: 'SQLITE_IOERR_FSYNC', message: expect.stringContaining('EINVAL') })
    expect(isFatal(thrown)).toBe(true)
  },
)

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
