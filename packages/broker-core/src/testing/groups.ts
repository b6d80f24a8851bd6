import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { QueueSend } from '../engine/queue-engine.ts'
import type { QueueDelivery } from '../message.ts'
import type { GroupSettings } from '../settings/channel-settings.ts'
import type { ContractCase } from './contract-case.ts'
import { eventually, isolatedCase, pause } from './contract-case.ts'
import { CONSUMER, PRODUCER, queued, receive, receiveMany, receiveOne, text, texts } from './messages.ts'

/** A wait in which a message that may be delivered would come. */
const QUIET_MS = 300
const SHORT_LEASE_MS = 250

const ORDERED: GroupSettings = { mode: 'ordered', max_in_flight_per_group: 1 }
const FAIR: GroupSettings = { mode: 'fair', max_in_flight_per_group: 0 }

/** Sets the groups of a queue, or removes them, for the whole engine. */
function setGroups(engine: Engine, match: string, groups: GroupSettings | undefined): void {
  engine.settings.replace(groups ? [{ type: 'queues', match, source: 'api', groups }] : [])
}

/** Returns a message of the group that its text begins with, such as `a` for `a1`; none for a text with a digit first. */
function grouped(body: string, more: Partial<QueueSend> = {}): QueueSend {
  const group = /^[a-z]+/.exec(body)?.[0]
  return queued(body, { tags: group === undefined ? {} : { group }, ...more })
}

async function send(engine: Engine, queue: string, ...bodies: string[]): Promise<void> {
  for (const body of bodies) await engine.queues.send(queue, grouped(body))
}

/** Creates the queue with its groups. */
async function createGrouped(engine: Engine, queue: string, groups: GroupSettings): Promise<void> {
  setGroups(engine, queue, groups)
  await engine.channels.create('queues', queue)
}

async function ack(engine: Engine, ...deliveries: readonly QueueDelivery[]): Promise<void> {
  const receipts = deliveries.map(({ receipt }) => receipt)
  assert.deepEqual(await engine.queues.ack(receipts, CONSUMER), { settled: receipts.length, lost: [] })
}

async function nack(engine: Engine, ...deliveries: readonly QueueDelivery[]): Promise<void> {
  const receipts = deliveries.map(({ receipt }) => receipt)
  assert.deepEqual(await engine.queues.nack(receipts, CONSUMER), { settled: receipts.length, lost: [] })
}

function bodiesOf(deliveries: readonly QueueDelivery[]): string[] {
  return texts(deliveries.map(({ message }) => message))
}

/** Asserts that the queue delivers nothing for a while. */
async function assertQuiet(engine: Engine, queue: string): Promise<void> {
  assert.deepEqual(bodiesOf(await receive(engine, queue, { maxMessages: 100, waitMs: QUIET_MS })), [])
}

/** Receives and acknowledges until `count` messages came, one batch at a time; returns the batches. */
async function drain(engine: Engine, queue: string, count: number, maxMessages: number): Promise<string[][]> {
  const batches: string[][] = []
  while (batches.flat().length < count) {
    const deliveries = await receive(engine, queue, { maxMessages })
    assert.ok(deliveries.length > 0, `${count} messages come; ${JSON.stringify(batches)} came`)
    batches.push(bodiesOf(deliveries))
    await ack(engine, ...deliveries)
  }
  return batches
}

/** Returns the bodies of one group, in the order of the deliveries. */
function of(group: string, bodies: readonly string[]): string[] {
  return bodies.filter((body) => body.startsWith(group))
}

/** Cases for queues whose settings have groups. Isolated: the settings belong to the whole engine. */
export const groupCases: readonly ContractCase[] = [
  isolatedCase('groups - an ordered group has one message in flight', async ({ engine, channel }) => {
    const queue = channel('one-in-flight')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2', 'a3')
    const first = await receiveOne(engine, queue, { maxMessages: 10 })
    assert.equal(text(first.message), 'a1')
    await assertQuiet(engine, queue)
    const next = receiveOne(engine, queue)
    await ack(engine, first)
    assert.equal(text((await next).message), 'a2')
  }),

  isolatedCase('groups - a batch has at most one message of an ordered group', async ({ engine, channel }) => {
    const queue = channel('batch')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2', 'b1', 'b2', 'c1', 'c2')
    const batches = await drain(engine, queue, 6, 10)
    for (const batch of batches) {
      assert.equal(new Set(batch.map((body) => body[0])).size, batch.length, `one of each group: ${String(batch)}`)
    }
    for (const group of ['a', 'b', 'c']) assert.deepEqual(of(group, batches.flat()), [`${group}1`, `${group}2`])
  }),

  isolatedCase('groups - an ordered group keeps the order of the sends', async ({ engine, channel }) => {
    const queue = channel('order')
    await createGrouped(engine, queue, ORDERED)
    const groups = Array.from('abcdefghijklmnopqrst')
    const bodies = Array.from({ length: 100 }, (_, i) => `${groups[i % groups.length] ?? ''}${Math.floor(i / 20)}`)
    await engine.queues.sendBatch(
      queue,
      bodies.map((body) => grouped(body)),
    )
    const came = (await drain(engine, queue, bodies.length, 7)).flat()
    for (const group of groups) assert.deepEqual(of(group, came), of(group, bodies))
  }),

  isolatedCase('groups - a nacked head comes before its successors', async ({ engine, channel }) => {
    const queue = channel('nack')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2')
    await nack(engine, await receiveOne(engine, queue))
    const again = await receiveOne(engine, queue)
    assert.deepEqual([text(again.message), again.message.receiveCount], ['a1', 2])
    await ack(engine, again)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
  }),

  isolatedCase('groups - a head that backs off comes before its successors', async ({ engine, channel }) => {
    const queue = channel('backoff')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2')
    const head = await receiveOne(engine, queue)
    const started = performance.now()
    await engine.queues.nack([head.receipt], CONSUMER, { delayMs: 1_500 })
    const next = await receiveOne(engine, queue)
    assert.deepEqual([text(next.message), next.message.receiveCount], ['a1', 2])
    assert.ok(performance.now() - started >= 1_300, 'it came after its delay')
    await ack(engine, next)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
  }),

  isolatedCase('groups - a head backs off by the queue’s policy after a lapse', async ({ engine, channel }) => {
    const queue = channel('backoff-policy')
    const retry = {
      max_receive_count: 0,
      dead_letter_queue: '',
      min_backoff_seconds: 1,
      max_backoff_seconds: 1,
      backoff_factor: 1,
      jitter: 0,
    }
    engine.settings.replace([{ type: 'queues', match: queue, source: 'api', groups: ORDERED, retry }])
    await engine.channels.create('queues', queue)
    await send(engine, queue, 'a1', 'a2')
    await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
    const started = performance.now()
    const next = await receiveOne(engine, queue)
    assert.deepEqual([text(next.message), next.message.receiveCount], ['a1', 2])
    assert.ok(performance.now() - started >= 900, 'it came after its backoff')
  }),

  isolatedCase('groups - after a lapse the head comes first, and the late ack is lost', async ({ engine, channel }) => {
    const queue = channel('lapse')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2')
    const late = await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
    const again = await receiveOne(engine, queue)
    assert.deepEqual([text(again.message), again.message.receiveCount], ['a1', 2])
    assert.deepEqual(await engine.queues.ack([late.receipt], CONSUMER), { settled: 0, lost: [late.receipt] })
    await ack(engine, again)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
  }),

  isolatedCase('groups - a group continues when its head is dead-lettered', async ({ engine, channel }) => {
    const [queue, dead] = [channel('dead-head'), channel('dead')]
    await createGrouped(engine, queue, ORDERED)
    await engine.queues.send(queue, grouped('a1', { maxReceiveCount: 1, deadLetterQueue: dead }))
    await send(engine, queue, 'a2')
    const next = receiveOne(engine, queue)
    await nack(engine, await next)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
    const { message } = await receiveOne(engine, dead)
    assert.deepEqual([text(message), message.tags['group']], ['a1', 'a'])
  }),

  isolatedCase('groups - a group continues when its head expires', async ({ engine, channel }) => {
    const queue = channel('expired-head')
    await createGrouped(engine, queue, ORDERED)
    await engine.queues.send(queue, grouped('a1', { expirationMs: 2_000 }))
    const head = await receiveOne(engine, queue)
    await send(engine, queue, 'a2')
    await pause(2_100)
    const next = receiveOne(engine, queue)
    await nack(engine, head)
    assert.equal(text((await next).message), 'a2')
  }),

  isolatedCase('groups - a waiting head that expires does not delay its successor', async ({ engine, channel }) => {
    const queue = channel('expired-waiting')
    await createGrouped(engine, queue, ORDERED)
    await engine.queues.send(queue, grouped('a1', { expirationMs: 100 }))
    await send(engine, queue, 'a2')
    await pause(150)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
  }),

  isolatedCase('groups - a purge keeps leased heads, and the groups continue', async ({ engine, channel }) => {
    const queue = channel('purge')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2', 'b1', 'b2')
    const [head] = await receiveMany(engine, queue, 1)
    assert.ok(head)
    await engine.queues.purge(queue)
    await send(engine, queue, 'a3', 'b3')
    const group = text(head.message).slice(0, 1)
    const other = group === 'a' ? 'b' : 'a'
    assert.equal(text((await receiveOne(engine, queue)).message), `${other}3`)
    await ack(engine, head)
    assert.equal(text((await receiveOne(engine, queue)).message), `${group}3`)
  }),

  isolatedCase('groups - messages without a group are unordered in an ordered queue', async ({ engine, channel }) => {
    const queue = channel('no-group')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, '1', '2', '3')
    assert.deepEqual(bodiesOf(await receiveMany(engine, queue, 3)).toSorted(), ['1', '2', '3'])
  }),

  isolatedCase('groups - the tag ce_partitionkey wins over the tag group', async ({ engine, channel }) => {
    const queue = channel('partition-key')
    await createGrouped(engine, queue, ORDERED)
    await engine.queues.send(queue, queued('1', { tags: { ce_partitionkey: 'k', group: 'x' } }))
    await engine.queues.send(queue, queued('2', { tags: { ce_partitionkey: 'k', group: 'y' } }))
    const first = await receiveOne(engine, queue, { maxMessages: 10 })
    assert.equal(text(first.message), '1')
    await assertQuiet(engine, queue)
  }),

  isolatedCase('groups - groups of an ordered queue do not wait for each other', async ({ engine, channel }) => {
    const queue = channel('independent')
    await createGrouped(engine, queue, ORDERED)
    const groups = Array.from('abcdefghijklmnopqrstuvwxyz')
    await send(engine, queue, ...groups.map((group) => `${group}1`))
    const partitions = engine.capabilities.groupPartitions
    if (partitions === 0) {
      assert.deepEqual(bodiesOf(await receiveMany(engine, queue, 26)).toSorted(), bodiesOfGroups(groups))
      return
    }
    const leased = [...(await receiveMany(engine, queue, 2))]
    for (;;) {
      const more = await receive(engine, queue, { maxMessages: 26, waitMs: QUIET_MS })
      if (more.length === 0) break
      leased.push(...more)
    }
    assert.ok(leased.length > 1 && leased.length <= partitions, `${leased.length} of ${partitions} partitions`)
  }),

  isolatedCase('groups - a large group does not delay the other ones of a fair queue', async ({ engine, channel }) => {
    const queue = channel('fair')
    await createGrouped(engine, queue, FAIR)
    const bulk = Array.from({ length: 60 }, (_, i) => grouped(`bulk${i}`))
    await engine.queues.sendBatch(queue, bulk)
    await send(engine, queue, 'a1', 'b1', 'c1')
    const came = (await drain(engine, queue, 63, 1)).flat()
    // Each group is next after one message of each other group; partitions have turns only on average.
    const latest = engine.capabilities.groupPartitions === 0 ? 4 : 45
    for (const body of ['a1', 'b1', 'c1']) {
      const at = came.indexOf(body)
      assert.ok(at <= latest, `${body} is number ${at}`)
    }
    assert.equal(new Set(came).size, 63)
  }),

  isolatedCase('groups - a fair queue limits the leased messages of each group', async ({ engine, channel }) => {
    const queue = channel('fair-limit')
    await createGrouped(engine, queue, { mode: 'fair', max_in_flight_per_group: 2 })
    await send(engine, queue, 'a1', 'a2', 'a3', 'a4')
    const leased = await receiveMany(engine, queue, 2)
    assert.deepEqual(bodiesOf(leased), ['a1', 'a2'])
    await assertQuiet(engine, queue)
    await ack(engine, ...leased.slice(0, 1))
    assert.equal(text((await receiveOne(engine, queue)).message), 'a3')
    await assertQuiet(engine, queue)
  }),

  isolatedCase('groups - messages without a group share one in a fair queue', async ({ engine, channel }) => {
    const queue = channel('fair-shared')
    await createGrouped(engine, queue, { mode: 'fair', max_in_flight_per_group: 1 })
    await send(engine, queue, '1', '2')
    const first = await receiveOne(engine, queue, { maxMessages: 10 })
    await assertQuiet(engine, queue)
    await ack(engine, first)
    assert.equal(text((await receiveOne(engine, queue)).message), '2')
  }),

  isolatedCase('groups - a fair queue accepts delays', async ({ engine, channel }) => {
    const queue = channel('fair-delay')
    await createGrouped(engine, queue, FAIR)
    // The first receive prepares the queue, which may take longer than the delay.
    await send(engine, queue, 'a0')
    await ack(engine, await receiveOne(engine, queue))
    await engine.queues.send(queue, grouped('a1', { delayMs: 2_000 }))
    await send(engine, queue, 'a2')
    assert.deepEqual((await drain(engine, queue, 2, 1)).flat(), ['a2', 'a1'])
  }),

  isolatedCase('groups - a message that is sent again is the last of its group', async ({ engine, channel }) => {
    const [queue, dead] = [channel('redrive'), channel('redrive-dead')]
    await createGrouped(engine, queue, ORDERED)
    await engine.queues.send(queue, grouped('a1', { maxReceiveCount: 1, deadLetterQueue: dead }))
    await send(engine, queue, 'a2')
    await nack(engine, await receiveOne(engine, queue))
    const { message } = await receiveOne(engine, dead)
    await engine.queues.send(queue, queued(message.body, { tags: message.tags }))
    assert.deepEqual((await drain(engine, queue, 2, 1)).flat(), ['a2', 'a1'])
  }),

  isolatedCase('groups - order survives a restart', async (context) => {
    const { channel, restart } = context
    const queue = channel('restart')
    await createGrouped(context.engine, queue, ORDERED)
    await send(context.engine, queue, 'a1', 'a2', 'a3', 'b1', 'b2')
    const head = await receiveOne(context.engine, queue)
    await ack(context.engine, head)
    await restart()
    setGroups(context.engine, queue, ORDERED)
    const came = [text(head.message), ...(await drain(context.engine, queue, 4, 10)).flat()]
    assert.deepEqual(of('a', came), ['a1', 'a2', 'a3'])
    assert.deepEqual(of('b', came), ['b1', 'b2'])
  }),

  isolatedCase('groups - a deleted queue starts without its groups', async ({ engine, channel }) => {
    const queue = channel('deleted')
    await createGrouped(engine, queue, ORDERED)
    await send(engine, queue, 'a1', 'a2')
    await receiveOne(engine, queue)
    await engine.channels.delete('queues', queue)
    await eventually(async () => assert.equal(await engine.channels.info('queues', queue), undefined))
    await engine.queues.send(queue, queued('a3', { tags: { group: 'a' }, clientId: PRODUCER }))
    assert.equal(text((await receiveOne(engine, queue)).message), 'a3')
  }),

  isolatedCase('groups - settings change the groups of messages that wait', async ({ engine, channel }) => {
    if (engine.capabilities.groupPartitions > 0) return
    const queue = channel('change')
    await send(engine, queue, 'a1', 'a2', 'b1')
    setGroups(engine, queue, ORDERED)
    const heads = await receiveMany(engine, queue, 2)
    assert.deepEqual(bodiesOf(heads), ['a1', 'b1'])
    await assertQuiet(engine, queue)
    setGroups(engine, queue, undefined)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a2')
    await nack(engine, ...heads)
    setGroups(engine, queue, FAIR)
    assert.deepEqual(bodiesOf(await receiveMany(engine, queue, 2)).toSorted(), ['a1', 'b1'])
  }),
]

function bodiesOfGroups(groups: readonly string[]): string[] {
  return groups.map((group) => `${group}1`)
}
