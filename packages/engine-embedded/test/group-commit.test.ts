import { expect, test } from 'vitest'

import type { CommitInfo } from '@signalbox/engine-embedded'

import { CLIENT, Folder, storedEvent, queued, receive, textsOf } from './support/store.ts'

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
  // No caller within the types can do this; it stands for whatever SQLite may object to while a group is written. The
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
