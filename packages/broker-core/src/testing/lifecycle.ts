import assert from 'node:assert/strict'

import { RESERVED_PREFIX } from '../channel.ts'
import { isBrokerError } from '../errors.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, isolatedCase } from './contract-case.ts'
import {
  appendAll,
  CONSUMER,
  numbered,
  outgoing,
  queued,
  receive,
  receiveOne,
  reply,
  sendAll,
  storedEvent,
} from './messages.ts'
import { eventually, PATIENCE_MS, pause, rejectsWith, within } from './waiting.ts'

/** Cases for health, statistics and closing. */
export const lifecycleCases: readonly ContractCase[] = [
  isolatedCase('lifecycle - an engine has a short name and declares its capabilities', async (context) => {
    const { name, capabilities, limits } = context.engine
    assert.match(name, /^[a-z][a-z0-9-]{0,31}$/)
    assert.ok(limits.maxMessageBytes > 0)
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
]
