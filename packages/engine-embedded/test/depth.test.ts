import { stat } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { eventually } from '@signalbox/testkit/until'

import { CLIENT, Folder, storedEvent, queued, receive, textsOf } from './support/store.ts'

/** Many more than a queue keeps in memory. */
const DEPTH = 30_000

test('depth - a deep queue is delivered in order, each message once, across a restart', async () => {
  await using folder = await Folder.make()
  {
    await using engine = await folder.open()
    for (let i = 0; i < DEPTH; i += 1_000) {
      await engine.queues.sendBatch(
        'queue',
        Array.from({ length: 1_000 }, (_, j) => queued(String(i + j))),
      )
    }
    expect((await engine.channels.info('queues', 'queue'))?.queue).toMatchObject({ waiting: DEPTH, inFlight: 0 })
  }
  await using engine = await folder.open()
  expect((await engine.stats()).queues).toEqual({ waiting: DEPTH, delayed: 0, inFlight: 0 })
  const order: (string | undefined)[] = []
  let late = 0
  for (let batch = 0; ; batch++) {
    let deliveries = await receive(engine, 'queue', { maxMessages: 997 })
    if (deliveries.length === 0) break
    if (batch % 2 === 0) {
      // Every other batch goes back once, to its place.
      await engine.queues.nack(
        deliveries.map(({ receipt }) => receipt),
        CLIENT,
      )
      deliveries = await receive(engine, 'queue', { maxMessages: deliveries.length })
    }
    order.push(...textsOf(deliveries))
    await engine.queues.ack(
      deliveries.map(({ receipt }) => receipt),
      CLIENT,
    )
    // What is sent meanwhile comes last.
    if (batch < 20) await engine.queues.send('queue', queued(`late ${late++}`))
  }
  const expected = Array.from({ length: DEPTH }, (_, i) => String(i))
  expect(order).toEqual([...expected, ...Array.from({ length: late }, (_, i) => `late ${i}`)])
}, 90_000)

test('depth - rejected messages from far behind the head return to their places before the rest', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const texts = Array.from({ length: 9_000 }, (_, i) => String(i))
  await engine.queues.sendBatch(
    'queue',
    texts.map((text) => queued(text)),
  )
  const taken = await receive(engine, 'queue', { maxMessages: 9_000 })
  expect(taken).toHaveLength(9_000)
  await engine.queues.send('queue', queued('last'))
  await engine.queues.nack(taken.map(({ receipt }) => receipt).toReversed(), CLIENT)
  const again = await receive(engine, 'queue', { maxMessages: 10_000 })
  expect(textsOf(again)).toEqual([...texts, 'last'])
})

test('depth - purge and delete of a deep queue leave nothing, and give the disk back', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const large = 'x'.repeat(2_000)
  const batch = () => Array.from({ length: 1_500 }, () => queued(large))
  for (let i = 0; i < 8; i++) {
    await engine.queues.sendBatch('purged', batch())
    await engine.queues.sendBatch('deleted', batch())
  }
  await engine.queues.send('purged', queued('delayed', { delayMs: 60_000 }))
  const [leased] = await receive(engine, 'purged', { maxMessages: 1 })
  const { storeBytes } = await engine.stats()
  expect(await engine.queues.purge('purged')).toBe(12_000)
  expect((await engine.channels.info('queues', 'purged'))?.queue).toMatchObject({ waiting: 0, delayed: 0, inFlight: 1 })
  expect(await engine.queues.ack([leased?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
  expect(await engine.channels.delete('queues', 'deleted')).toBe(true)
  await engine.queues.send('deleted', queued('new'))
  expect(textsOf(await receive(engine, 'deleted'))).toEqual(['new'])
  await eventually(async () => expect((await engine.stats()).storeBytes).toBeLessThan(storeBytes / 2), 60_000)
}, 90_000)

test('depth - the WAL does not grow without bound while the store is read and written', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  let followed = 0
  await engine.eventsStore.subscribe('log', { from: 'first' }, {}, () => void followed++)
  let largest = 0
  for (let i = 0; i < 120; i++) {
    await Promise.all([
      ...Array.from({ length: 100 }, () => engine.eventsStore.append('log', storedEvent('x'.repeat(8_000)))),
      engine.eventsStore.read('log', { maxMessages: 100 }),
      engine.eventsStore.readLatest('log', { maxMessages: 100 }),
    ])
    largest = Math.max(largest, (await stat(folder.file('signalbox.db-wal'))).size)
  }
  // 96 MB were written; a checkpoint comes every 2,000 pages of 8 KiB.
  expect(largest).toBeLessThan(48 * 1024 * 1024)
  await eventually(() => expect(followed).toBe(12_000), 40_000)
  await eventually(async () => expect((await stat(folder.file('signalbox.db-wal'))).size).toBe(0), 40_000)
}, 120_000)
