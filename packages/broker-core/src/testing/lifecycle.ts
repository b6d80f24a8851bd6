import assert from 'node:assert/strict'

import { RESERVED_PREFIX } from '../channel.ts'
import { isBrokerError } from '../errors.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, PATIENCE_MS, pause, rejectsWith, within } from './contract-case.ts'
import {
  appendAll,
  assertBytes,
  assertNothingDue,
  assertTags,
  CONSUMER,
  numbered,
  outgoing,
  queued,
  receive,
  receiveMany,
  receiveOne,
  reply,
  sendAll,
  storedEvent,
  text,
  texts,
} from './messages.ts'

/** Cases for health, statistics and closing. */
export const lifecycleCases: readonly ContractCase[] = [
  isolatedCase('lifecycle - an engine has a short name and declares its capabilities', async (context) => {
    const { name, capabilities, limits } = context.engine
    assert.match(name, /^[a-z][a-z0-9-]{0,31}$/)
    assert.ok(limits.maxMessageBytes > 0)
    assert.ok(Number.isInteger(limits.creationsAtOnce) && limits.creationsAtOnce >= 0)
    assert.ok(limits.maxChannels >= 0)
    const declared = { ...capabilities }
    await context.restart()
    assert.equal(context.engine.name, name)
    assert.deepEqual({ ...context.engine.capabilities }, declared)
  }),

  contractCase('lifecycle - a running engine is healthy and lists its checks', async ({ engine }) => {
    const { ok, checks } = await engine.health()
    assert.equal(ok, true)
    assert.ok(checks.length > 0)
    for (const check of checks) {
      assert.notEqual(check.name, '')
      assert.equal(check.ok, true)
      assert.equal(typeof check.detail, 'string')
    }
    assert.equal(new Set(checks.map(({ name }) => name)).size, checks.length)
  }),

  isolatedCase('lifecycle - statistics add up over all queues', async ({ engine, channel }) => {
    const before = await engine.stats()
    const [one, two] = [channel('one'), channel('two')]
    await sendAll(engine, one, numbered(3))
    await sendAll(engine, two, numbered(2))
    await engine.queues.send(two, queued('delayed', { delayMs: 60_000 }))
    // The broker's own channels do not count as users' channels.
    await engine.eventsStore.append(`${RESERVED_PREFIX}${channel('log')}`, storedEvent('x'))
    await receiveOne(engine, one)
    await eventually(async () => {
      const { channels, queues, storeBytes } = await engine.stats()
      assert.deepEqual(
        [
          queues.waiting - before.queues.waiting,
          queues.delayed - before.queues.delayed,
          queues.inFlight - before.queues.inFlight,
        ],
        [4, 1, 1],
      )
      assert.equal(channels - before.channels, 2)
      assert.ok(storeBytes > 0)
    })
  }),

  isolatedCase('lifecycle - close is idempotent', async ({ engine, channel }) => {
    await engine.queues.send(channel('queue'), queued('x'))
    await within(Promise.all([engine.close(), engine.close()]), 'both closes')
    await within(engine.close(), 'a third close')
  }),

  isolatedCase('lifecycle - a closed engine refuses every call', async ({ engine, channel }) => {
    const name = channel('closed')
    await engine.queues.send(name, queued('x'))
    await engine.eventsStore.append(name, storedEvent('x'))
    const { receipt } = await receiveOne(engine, name)
    await engine.close()
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      send: () => engine.queues.send(name, queued('y')),
      sendBatch: () => engine.queues.sendBatch(name, [queued('y')]),
      receive: () => receive(engine, name, { waitMs: 0 }),
      peek: () => engine.queues.peek(name, { maxMessages: 1 }),
      purge: () => engine.queues.purge(name),
      publish: () => engine.events.publish(name, outgoing('y')),
      'events.subscribe': () => engine.events.subscribe(name, {}, () => {}),
      append: () => engine.eventsStore.append(name, storedEvent('y')),
      read: () => engine.eventsStore.read(name, { maxMessages: 1 }),
      readLatest: () => engine.eventsStore.readLatest(name, { maxMessages: 1 }),
      getLast: () => engine.eventsStore.getLast(name, 'key'),
      'eventsStore.subscribe': () => engine.eventsStore.subscribe(name, { from: 'first' }, {}, () => {}),
      request: () => engine.requests.request('queries', name, outgoing('y'), { timeoutMs: 100 }),
      serve: () => engine.requests.serve('queries', name, {}, async () => reply('y')),
      create: () => engine.channels.create('queues', channel('more')),
      createEvents: () => engine.channels.create('events', channel('more')),
      delete: () => engine.channels.delete('queues', name),
    }
    const answered: string[] = []
    for (const [what, call] of Object.entries(calls)) {
      const outcome = await within(
        call().then(
          () => what,
          (error: unknown) => error,
        ),
        `${what} to end`,
      )
      if (outcome === what) answered.push(what)
      else if (!isBrokerError(outcome, 'ENGINE_UNAVAILABLE')) throw outcome
    }
    assert.deepEqual(answered, [], 'calls that a closed engine answered')
    const { settled } = await engine.queues.ack([receipt], CONSUMER).catch(() => ({ settled: 0 }))
    assert.equal(settled, 0)
    assert.notEqual((await engine.health().catch(() => ({ ok: false }))).ok, true)
  }),

  isolatedCase('lifecycle - close ends every waiting call', async ({ engine, channel }) => {
    const name = channel('waits')
    await engine.channels.create('queues', name)
    await engine.requests.serve('queries', name, {}, () => new Promise(() => {}))
    const waits = [receive(engine, name, { waitMs: 60_000 }), receive(engine, channel('missing'), { waitMs: 60_000 })]
    const requests = [
      engine.requests.request('queries', name, outgoing('x'), { timeoutMs: 60_000 }),
      engine.requests.request('queries', channel('nobody'), outgoing('x'), { timeoutMs: 60_000 }),
    ]
    const ended = Promise.allSettled(waits)
    const refused = Promise.all(requests.map((request) => rejectsWith('ENGINE_UNAVAILABLE', request)))
    refused.catch(() => {})
    await pause(50)
    await within(engine.close(), 'the engine to close')
    for (const outcome of await within(ended, 'the receives to end')) {
      if (outcome.status === 'fulfilled') assert.deepEqual(outcome.value, [])
      else await rejectsWith('ENGINE_UNAVAILABLE', Promise.reject(outcome.reason))
    }
    await refused
  }),

  isolatedCase('lifecycle - close ends every subscription with an error', async ({ engine, channel }) => {
    const name = channel('subscriptions')
    await appendAll(engine, name, ['x'])
    const subscriptions = [
      await engine.events.subscribe(name, {}, () => {}),
      await engine.events.subscribe(`${name}.>`, { group: 'g' }, () => {}),
      await engine.eventsStore.subscribe(name, { from: 'new' }, {}, () => {}),
      await engine.eventsStore.subscribe(name, { from: 'first' }, { group: 'g' }, () => new Promise<void>(() => {})),
      await engine.requests.serve('queries', name, {}, async () => reply('x')),
    ]
    const closed = await engine.events.subscribe(name, {}, () => {})
    await closed.close()
    await within(engine.close(), 'the engine to close')
    for (const subscription of subscriptions) {
      const reason = await within(subscription.closed, 'the subscription to end')
      assert.ok(reason instanceof Error, `subscription ${subscriptions.indexOf(subscription)} has a reason`)
      await within(subscription.close(), 'closing a closed subscription')
    }
    assert.equal(await closed.closed, undefined, 'a subscription closed before has no error')
  }),

  isolatedCase('lifecycle - accepted messages are available after close', async (context) => {
    const queue = context.channel('accepted')
    const store = context.channel('accepted')
    const sends = numbered(50).map((body) => context.engine.queues.send(queue, queued(body)))
    const appends = numbered(50).map((body) => context.engine.eventsStore.append(store, storedEvent(body)))
    const outcomes = Promise.allSettled([...sends, ...appends])
    await context.restart()
    const settled = await within(outcomes, 'every call to end')
    const accepted = (from: number) =>
      settled.slice(from, from + 50).filter(({ status }) => status === 'fulfilled').length
    const kept = (await context.engine.queues.peek(queue, { maxMessages: 100 })).length
    const entries = (await context.engine.eventsStore.read(store, { maxMessages: 100 })).length
    assert.ok(kept >= accepted(0), `${accepted(0)} messages were accepted, ${kept} are stored`)
    assert.ok(entries >= accepted(50), `${accepted(50)} entries were accepted, ${entries} are stored`)
  }),

  isolatedCase('lifecycle - an engine works after a restart with waiting receives and requests', async (context) => {
    const name = context.channel('works')
    await context.engine.queues.send(name, queued('x'))
    await context.restart()
    const { engine } = context
    await receiveOne(engine, name)
    const waiting = receiveOne(engine, name)
    await pause(20)
    await engine.queues.send(name, queued('y'))
    await waiting
    const request = engine.requests.request('queries', name, outgoing('x'), { timeoutMs: PATIENCE_MS })
    await engine.requests.serve('queries', name, {}, async () => reply('z'))
    assert.equal((await request).executed, true)
  }),

  // ── The data after an engine was closed and opened again ──

  isolatedCase('restart - messages and their order survive', async (context) => {
    const queue = context.channel('queue')
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const tags = Object.fromEntries([
      ['__proto__', 'data'],
      ['', '🙂'],
    ])
    const message = queued(body, { metadata: 'meta', tags, expirationMs: 3_600_000 })
    await context.engine.queues.send(queue, message)
    await sendAll(context.engine, queue, numbered(20))
    const [before] = await context.engine.queues.peek(queue, { maxMessages: 1 })
    await context.restart()
    const [first, ...rest] = await receiveMany(context.engine, queue, 21)
    assert.ok(first && before)
    assertBytes(first.message.body, body)
    assertTags(first.message.tags, tags)
    const { id, clientId, metadata, timestamp, expiresAt, sequence, receiveCount } = first.message
    assert.deepEqual([id, clientId, metadata], [message.id, message.clientId, 'meta'])
    assert.deepEqual([timestamp, expiresAt, sequence], [before.timestamp, before.expiresAt, 1])
    assert.equal(receiveCount, 1)
    assert.deepEqual(texts(rest.map((delivery) => delivery.message)), numbered(20))
  }),

  isolatedCase('restart - sequences continue, also in an empty queue', async (context) => {
    const [queue, store] = [context.channel('queue'), context.channel('log')]
    await sendAll(context.engine, queue, ['x', 'y'])
    await appendAll(context.engine, store, numbered(3))
    for (const { receipt } of await receiveMany(context.engine, queue, 2)) {
      await context.engine.queues.ack([receipt], CONSUMER)
    }
    await context.restart()
    assert.equal((await context.engine.queues.send(queue, queued('z'))).sequence, 3)
    assert.equal((await context.engine.eventsStore.append(store, storedEvent('n'))).sequence, 4)
    await context.restart()
    assert.equal((await context.engine.queues.send(queue, queued('z'))).sequence, 4)
    assert.deepEqual(texts(await context.engine.eventsStore.read(store, { maxMessages: 10 })), [...numbered(3), 'n'])
  }),

  isolatedCase('restart - acked and purged messages do not return', async (context) => {
    const [acked, purged] = [context.channel('acked'), context.channel('purged')]
    await sendAll(context.engine, acked, ['x', 'y'])
    await sendAll(context.engine, purged, ['x', 'y'])
    const { receipt } = await receiveOne(context.engine, acked)
    await context.engine.queues.ack([receipt], CONSUMER)
    await context.engine.queues.purge(purged)
    await context.restart()
    assert.equal(text((await receiveOne(context.engine, acked)).message), 'y')
    await assertNothingDue(context.engine, acked)
    await assertNothingDue(context.engine, purged)
  }),

  isolatedCase('restart - receive counts survive', async (context) => {
    const queue = context.channel('counts')
    const deadLetterQueue = context.channel('dead')
    await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 3, deadLetterQueue }))
    for (let count = 1; count <= 2; count += 1) {
      const { receipt, message } = await receiveOne(context.engine, queue)
      assert.equal(message.receiveCount, count)
      await context.engine.queues.nack([receipt], CONSUMER)
    }
    await context.restart()
    const { receipt, message } = await receiveOne(context.engine, queue)
    assert.deepEqual([message.receiveCount, message.maxReceiveCount], [3, 3])
    await context.engine.queues.nack([receipt], CONSUMER)
    assert.equal(text((await receiveOne(context.engine, deadLetterQueue)).message), 'x')
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - a message that was leased is not lost', async (context) => {
    const queue = context.channel('leased')
    await sendAll(context.engine, queue, ['x', 'y'])
    await receiveOne(context.engine, queue, { leaseMs: 1_000 })
    await context.restart()
    const deliveries = await receiveMany(context.engine, queue, 2)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)).toSorted(), ['x', 'y'])
  }),

  isolatedCase('restart - delays continue', async (context) => {
    const queue = context.channel('delay')
    const due = Date.now() + 1_500
    await context.engine.queues.send(queue, queued('later', { delayMs: 1_500 }))
    await context.engine.queues.send(queue, queued('much later', { delayMs: 3_600_000 }))
    await context.restart()
    const early = await receive(context.engine, queue, { waitMs: 0 })
    assert.ok(early.length === 0 || Date.now() >= due - 60, 'not before it is due')
    if (early.length === 0) assert.equal(text((await receiveOne(context.engine, queue)).message), 'later')
    await assertNothingDue(context.engine, queue)
    assert.equal((await context.engine.channels.info('queues', queue))?.queue?.delayed, 1)
  }),

  isolatedCase('restart - expiration continues', async (context) => {
    const queue = context.channel('expiration')
    await context.engine.queues.send(queue, queued('short-lived', { expirationMs: 150 }))
    await context.engine.queues.send(queue, queued('lasting', { expirationMs: 3_600_000 }))
    await context.restart()
    await pause(200)
    assert.equal(text((await receiveOne(context.engine, queue)).message), 'lasting')
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - dead letters survive', async (context) => {
    const [queue, deadLetterQueue] = [context.channel('source'), context.channel('dead')]
    await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
    const { receipt } = await receiveOne(context.engine, queue)
    await context.engine.queues.nack([receipt], CONSUMER)
    await context.restart()
    const { message } = await receiveOne(context.engine, deadLetterQueue)
    assert.deepEqual([text(message), message.tags['dlq_source'], message.expiresAt], ['x', queue, 0])
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - stored events and their times survive', async (context) => {
    const store = context.channel('log')
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const { timestamp } = await context.engine.eventsStore.append(
      store,
      storedEvent(body, { metadata: 'meta', tags: { '': '🙂' } }),
    )
    await appendAll(context.engine, store, numbered(50))
    await context.restart()
    const [first, ...rest] = await context.engine.eventsStore.read(store, { maxMessages: 100 })
    assert.ok(first)
    assertBytes(first.body, body)
    assertTags(first.tags, { '': '🙂' })
    assert.deepEqual([first.metadata, first.timestamp, first.sequence], ['meta', timestamp, 1])
    assert.deepEqual(texts(rest), numbered(50))
    const next = await context.engine.eventsStore.append(store, storedEvent('next'))
    assert.ok(next.timestamp >= (rest.at(-1)?.timestamp ?? 0), 'time does not go backwards')
  }),

  isolatedCase('restart - a deleted channel does not return', async (context) => {
    const name = context.channel('deleted')
    await sendAll(context.engine, name, ['x'])
    await appendAll(context.engine, name, ['x'])
    await context.engine.channels.delete('queues', name)
    await context.engine.channels.delete('events_store', name)
    await context.restart()
    assert.equal(await context.engine.channels.info('queues', name), undefined)
    assert.equal(await context.engine.channels.info('events_store', name), undefined)
    assert.equal((await context.engine.queues.send(name, queued('anew'))).sequence, 1)
    assert.equal(text((await receiveOne(context.engine, name)).message), 'anew')
  }),

  isolatedCase('restart - empty channels survive', async (context) => {
    const name = context.channel('created')
    await context.engine.channels.create('queues', name)
    await context.engine.channels.create('events_store', name)
    await context.restart()
    assert.equal(await context.engine.channels.create('queues', name), false)
    assert.equal(await context.engine.channels.create('events_store', name), false)
  }),
]
