import assert from 'node:assert/strict'

import type { ChannelType } from '../channel.ts'
import { CHANNEL_TYPES } from '../channel.ts'
import type { ChannelName } from '../engine/channel-engine.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, Inbox, isolatedCase, PATIENCE_MS, pause } from './contract-case.ts'
import {
  appendAll,
  assertNothingDue,
  CONSUMER,
  LONG_LEASE_MS,
  numbered,
  outgoing,
  queued,
  receiveOne,
  reply,
  sendAll,
  storedEvent,
  text,
} from './messages.ts'

/**
 * Returns names that the naming rules allow and that careless storage or transport would garble. The beginning of each
 * is unique.
 */
function names(root: string): readonly string[] {
  return [
    `${root} with blanks inside`,
    `${root}🙂`,
    `${root}größe`,
    `${root}.*a`,
    `${root}.a>b`,
    `${root}.a*`,
    `${root}/with/slashes/../up`,
    `${root}\\back`,
    `${root}$SYS.x`,
    `${root}%20%2e`,
    `${root}_a`,
    `${root}-a`,
    `${root}.a`,
    `${root}/a`,
    `${root} a`,
    `${root}:a`,
    `${root}'"\`;--`,
    `${root}?#&=+`,
    `${root}UPPER`,
    `${root}upper`,
    `${root}e\u0301`,
    `${root}é`,
    root.padEnd(255, 'x'),
    root.padEnd(254, 'x'),
  ]
}

/** Cases for creating, listing and deleting channels. */
export const channelCases: readonly ContractCase[] = [
  contractCase('C1 - channels: each type has its own name space', async ({ engine, channel }) => {
    const name = channel('same')
    for (const type of CHANNEL_TYPES) assert.equal(await engine.channels.create(type, name), true)
    assert.equal((await engine.channels.list()).filter((state) => state.name === name).length, 5)
    for (const type of CHANNEL_TYPES) assert.equal((await engine.channels.info(type, name))?.type, type)
    assert.equal(await engine.channels.delete('queues', name), true)
    assert.equal(await engine.channels.info('queues', name), undefined)
    assert.equal((await engine.channels.info('events_store', name))?.name, name)
  }),

  contractCase('C1 - channels: a message to one type does not reach another', async ({ engine, channel }) => {
    const name = channel('apart')
    const events = new Inbox<string>()
    await engine.events.subscribe(name, {}, (event) => events.push(text(event)))
    await engine.queues.send(name, queued('queue'))
    await engine.eventsStore.append(name, storedEvent('log'))
    await engine.events.publish(name, outgoing('topic'))
    assert.deepEqual(await events.take(1), ['topic'])
    assert.equal(text((await receiveOne(engine, name)).message), 'queue')
    await assertNothingDue(engine, name)
    assert.equal((await engine.eventsStore.read(name, { maxMessages: 10 })).length, 1)
  }),

  contractCase('channels - create returns true only for a new channel', async ({ engine, channel }) => {
    for (const type of CHANNEL_TYPES) {
      const name = channel('create')
      assert.equal(await engine.channels.create(type, name), true)
      assert.equal(await engine.channels.create(type, name), false)
      const state = await engine.channels.info(type, name)
      assert.ok(state)
      assert.deepEqual([state.type, state.name], [type, name])
      assert.deepEqual(
        [state.incoming, state.incomingBytes, state.outgoing, state.outgoingBytes, state.subscribers],
        [0, 0, 0, 0, 0],
      )
      assert.equal(state.lastActivity, 0, 'no activity yet')
      assert.equal(state.queue !== undefined, type === 'queues')
      assert.equal(state.eventsStore !== undefined, type === 'events_store')
    }
  }),

  contractCase('channels - a new queue and a new events store are empty', async ({ engine, channel }) => {
    const name = channel('empty')
    await engine.channels.create('queues', name)
    await engine.channels.create('events_store', name)
    assert.deepEqual(
      { ...(await engine.channels.info('queues', name))?.queue },
      { waiting: 0, delayed: 0, inFlight: 0, bytes: 0, deadLettered: 0, expired: 0 },
    )
    const store = (await engine.channels.info('events_store', name))?.eventsStore
    assert.deepEqual([store?.firstSequence, store?.lastSequence, store?.entries, store?.bytes], [0, 0, 0, 0])
  }),

  contractCase('C1 - channels: the first message creates the channel', async ({ engine, channel }) => {
    const name = channel('first-use')
    await engine.queues.send(name, queued('x'))
    await engine.eventsStore.append(name, storedEvent('x'))
    await engine.events.publish(name, outgoing('x'))
    for (const type of ['queues', 'events_store', 'events'] as const) {
      assert.equal((await engine.channels.info(type, name))?.incoming, 1)
      assert.equal(await engine.channels.create(type, name), false)
    }
    const batch = channel('first-batch')
    await engine.queues.sendBatch(batch, [queued('x')])
    assert.equal((await engine.channels.info('queues', batch))?.incoming, 1)
  }),

  contractCase(
    'C1, C3 - channels: a subscription by name creates the channel, one by wildcard does not',
    async ({ engine, channel }) => {
      const name = channel('subscribed')
      const subscriptions = [
        await engine.events.subscribe(name, {}, () => {}),
        await engine.eventsStore.subscribe(name, { from: 'new' }, {}, () => {}),
        await engine.requests.serve('commands', name, {}, async () => reply('x')),
        await engine.events.subscribe(`${name}.*`, {}, () => {}),
      ]
      for (const type of ['events', 'events_store', 'commands'] as const) {
        await eventually(async () => {
          const state = await engine.channels.info(type, name)
          assert.deepEqual([state?.subscribers, state?.incoming], [1, 0])
          assert.ok(state && Date.now() - state.lastActivity < 5_000, 'a subscriber counts as activity')
        })
      }
      assert.deepEqual(
        (await engine.channels.list()).filter((state) => state.name.startsWith(`${name}.`)),
        [],
      )
      for (const subscription of subscriptions) await subscription.close()
    },
  ),

  contractCase('channels - reads never create a channel', async ({ engine, channel }) => {
    const name = channel('read')
    await engine.queues.receive(name, { maxMessages: 1, waitMs: 50, leaseMs: LONG_LEASE_MS, clientId: CONSUMER })
    await engine.queues.peek(name, { maxMessages: 1 })
    await engine.eventsStore.read(name, { maxMessages: 1 })
    await engine.eventsStore.readLatest(name, { maxMessages: 1 })
    await engine.eventsStore.getLast(name, 'key')
    assert.equal(await engine.queues.purge(name), 0)
    for (const type of CHANNEL_TYPES) {
      assert.equal(await engine.channels.info(type, name), undefined)
      assert.equal(await engine.channels.delete(type, name), false)
    }
    assert.deepEqual(
      (await engine.channels.list()).filter((state) => state.name === name),
      [],
    )
  }),

  contractCase('channels - list returns one type or all, ordered by name', async ({ engine, channel }) => {
    const root = channel('list')
    const names = ['b', 'a', 'c.d', 'B', 'a.b', '10', '9'].map((name) => `${root}.${name}`)
    for (const name of names) await engine.channels.create('queues', name)
    for (const name of names.slice(0, 3)) await engine.channels.create('events', name)
    await engine.eventsStore.append(`${root}.log`, storedEvent('x'))
    const listed = async (type?: (typeof CHANNEL_TYPES)[number]) =>
      (await engine.channels.list(type)).filter(({ name }) => name.startsWith(root))
    assert.deepEqual(
      (await listed('queues')).map(({ name }) => name),
      names.toSorted(),
    )
    assert.deepEqual(
      (await listed('events')).map(({ name }) => name),
      names.slice(0, 3).toSorted(),
    )
    assert.deepEqual(await listed('commands'), [])
    const all = await listed()
    assert.equal(all.length, 11)
    for (const type of CHANNEL_TYPES) {
      assert.deepEqual(
        all.filter((state) => state.type === type),
        await listed(type),
      )
    }
  }),

  contractCase('channels - names, list and info agree', async ({ engine, channel }) => {
    const name = channel('agree')
    await sendAll(engine, name, numbered(3))
    await receiveOne(engine, name)
    await engine.eventsStore.append(name, storedEvent('x'))
    const own = (all: readonly ChannelName[]) =>
      all.filter((each) => each.name === name).map((each) => `${each.type} ${each.name}`)
    assert.deepEqual(own(await engine.channels.names()), [`queues ${name}`, `events_store ${name}`])
    assert.deepEqual(own(await engine.channels.list()), [`queues ${name}`, `events_store ${name}`])
    assert.deepEqual(own(await engine.channels.names('queues')), [`queues ${name}`])
    assert.deepEqual(
      CHANNEL_TYPES.filter((type) => engine.channels.exists(type, name)),
      ['queues', 'events_store'],
    )
    const asked = [
      ...(await engine.channels.names()).filter((each) => each.name === name),
      { type: 'events', name } as const,
    ]
    assert.deepEqual(own(await engine.channels.states(asked)), [`queues ${name}`, `events_store ${name}`])
    const listed = (await engine.channels.list('queues')).find((state) => state.name === name)
    assert.deepEqual(listed, await engine.channels.info('queues', name))
  }),

  contractCase('M8 - channels: the engine lists the broker’s own channels as well', async ({ engine, channel }) => {
    const name = `_AGENTS_.${channel('own')}`
    await engine.eventsStore.append(name, storedEvent('x'))
    assert.ok((await engine.channels.list('events_store')).some((state) => state.name === name))
  }),

  contractCase(
    'channels - a deleted queue loses its content, and a new one starts empty',
    async ({ engine, channel }) => {
      const queue = channel('delete-queue')
      await sendAll(engine, queue, numbered(3))
      await engine.queues.send(queue, queued('delayed', { delayMs: 100 }))
      const { receipt } = await receiveOne(engine, queue)
      assert.equal(await engine.channels.delete('queues', queue), true)
      assert.equal(await engine.channels.delete('queues', queue), false)
      assert.equal(await engine.channels.info('queues', queue), undefined)
      await pause(150)
      await assertNothingDue(engine, queue)
      assert.equal((await engine.queues.send(queue, queued('anew'))).sequence, 1)
      assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 0, lost: [receipt] })
      const { message } = await receiveOne(engine, queue)
      assert.deepEqual([text(message), message.sequence, message.receiveCount], ['anew', 1, 1])
      const state = await engine.channels.info('queues', queue)
      assert.deepEqual([state?.incoming, state?.queue?.waiting, state?.queue?.inFlight], [1, 0, 1])
    },
  ),

  contractCase(
    'channels - a deleted events store loses its content, and a new one starts empty',
    async ({ engine, channel }) => {
      const store = channel('delete-log')
      await engine.channels.create('events_store', store, { compacted: true })
      await engine.eventsStore.append(store, storedEvent('x', { key: 'a' }))
      await engine.eventsStore.append(store, storedEvent('y', { key: 'b' }))
      assert.equal(await engine.channels.delete('events_store', store), true)
      assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10 }), [])
      assert.equal(await engine.eventsStore.getLast(store, 'a'), undefined)
      await appendAll(engine, store, ['anew'])
      const [entry] = await engine.eventsStore.read(store, { maxMessages: 10 })
      assert.deepEqual([entry?.sequence, entry && text(entry)], [1, 'anew'])
      assert.equal(await engine.eventsStore.getLast(store, 'a'), undefined)
      await engine.eventsStore.append(store, storedEvent('1', { key: 'k' }))
      await engine.eventsStore.append(store, storedEvent('2', { key: 'k' }))
      assert.equal((await engine.eventsStore.read(store, { maxMessages: 10 })).length, 3, 'it is no longer compacted')
    },
  ),

  contractCase('channels - a receiver waiting on a deleted queue gets later messages', async ({ engine, channel }) => {
    const queue = channel('delete-waiting')
    await engine.channels.create('queues', queue)
    const waiting = receiveOne(engine, queue)
    await pause(30)
    await engine.channels.delete('queues', queue)
    await engine.queues.send(queue, queued('anew'))
    assert.equal(text((await waiting).message), 'anew')
  }),

  contractCase(
    'channels - a subscription to events continues after its channel is deleted',
    async ({ engine, channel }) => {
      const name = channel('delete-topic')
      const inbox = new Inbox<string>()
      await engine.events.subscribe(name, {}, (event) => inbox.push(text(event)))
      await engine.events.publish(name, outgoing('before'))
      await inbox.take(1)
      await engine.channels.delete('events', name)
      await engine.events.publish(name, outgoing('after'))
      assert.deepEqual(await inbox.take(2), ['before', 'after'])
    },
  ),

  // ── Channel names: every allowed name works, and no two are mixed up ──

  contractCase('C1 - channels: queues with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('q'))
    await Promise.all(all.map((name) => engine.queues.send(name, queued(name))))
    for (const name of all) {
      const { message } = await receiveOne(engine, name)
      assert.deepEqual([message.channel, text(message), message.sequence], [name, name, 1])
    }
  }),

  contractCase('C1 - channels: events stores with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('l'))
    await Promise.all(all.map((name) => engine.eventsStore.append(name, storedEvent(name))))
    for (const name of all) {
      const entries = await engine.eventsStore.read(name, { maxMessages: 10 })
      assert.deepEqual(
        entries.map((entry) => [entry.channel, text(entry), entry.sequence]),
        [[name, name, 1]],
      )
    }
  }),

  contractCase('C1 - channels: events on channels with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('t'))
    const inboxes = await Promise.all(
      all.map(async (name) => {
        const inbox = new Inbox<readonly [string, string]>()
        await engine.events.subscribe(name, {}, (event) => inbox.push([event.channel, text(event)]))
        return inbox
      }),
    )
    for (const name of all) await engine.events.publish(name, outgoing(name))
    for (const [i, inbox] of inboxes.entries()) {
      await inbox.take(1)
      assert.deepEqual(inbox.items, [[all[i], all[i]]])
    }
  }),

  contractCase(
    'C1 - channels: requests on channels with any allowed names are separate',
    async ({ engine, channel }) => {
      const all = names(channel('r'))
      for (const name of all) await engine.requests.serve('queries', name, {}, async () => reply(name))
      const answers = await Promise.all(
        all.map((name) => engine.requests.request('queries', name, outgoing('x'), { timeoutMs: PATIENCE_MS })),
      )
      assert.deepEqual(answers.map(text), all)
    },
  ),

  isolatedCase(
    'C1 - channels: any allowed name can be listed, found and deleted, and survives a restart',
    async (context) => {
      const all = names(context.channel('c'))
      for (const name of all) {
        for (const type of CHANNEL_TYPES) await context.engine.channels.create(type, name)
      }
      const listed = async (type: ChannelType) =>
        new Set((await context.engine.channels.list(type)).map(({ name }) => name))
      for (const type of CHANNEL_TYPES) assert.deepEqual(await listed(type), new Set(all))
      await context.restart()
      // Only stored types survive a restart.
      for (const type of ['queues', 'events_store'] as const) {
        assert.deepEqual(await listed(type), new Set(all))
        for (const name of all) {
          assert.equal((await context.engine.channels.info(type, name))?.name, name)
          assert.equal(await context.engine.channels.delete(type, name), true)
          assert.equal(await context.engine.channels.info(type, name), undefined)
        }
      }
    },
  ),
]
