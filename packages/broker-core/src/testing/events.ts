import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

import type { Engine } from '../engine/engine.ts'
import type { SubscribeOptions } from '../engine/event-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import type { Message } from '../message.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, Inbox, isolatedCase, pause, rejectsBecause, within } from './contract-case.ts'
import { assertBytes, assertTags, numbered, outgoing, PRODUCER, text, texts } from './messages.ts'

async function listen(
  engine: Engine,
  pattern: string,
  options: SubscribeOptions = {},
): Promise<{ inbox: Inbox<Message>; subscription: Subscription }> {
  const inbox = new Inbox<Message>()
  const subscription = await engine.events.subscribe(pattern, options, inbox.push)
  return { inbox, subscription }
}

async function publishAll(engine: Engine, channel: string, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await engine.events.publish(channel, outgoing(body))
}

/** Cases for events, which only current subscribers get. */
export const eventCases: readonly ContractCase[] = [
  contractCase('events - a subscriber gets an event as it was published', async ({ engine, channel }) => {
    const name = channel('whole')
    const { inbox } = await listen(engine, name)
    const id = randomUUID()
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const tags = Object.fromEntries([
      ['__proto__', 'data'],
      ['', 'empty'],
      ['ключ', '🙂\n'],
    ])
    const before = Date.now()
    await engine.events.publish(name, outgoing(body, { id, metadata: 'größe\u0000', tags }))
    const [event] = await inbox.take(1)
    assert.ok(event)
    assert.equal(event.id, id)
    assert.equal(event.channel, name)
    assert.equal(event.clientId, PRODUCER)
    assertBytes(event.body, body)
    assert.equal(event.metadata, 'größe\u0000')
    assertTags(event.tags, tags)
    assert.ok(Math.abs(event.timestamp - before) < 5_000)
  }),

  contractCase('events - events of 0 bytes and of 1 MiB arrive', async ({ engine, channel }) => {
    const name = channel('sizes')
    const { inbox } = await listen(engine, name)
    const large = new Uint8Array(Math.min(1024 * 1024, engine.limits.maxMessageBytes)).map((_, i) => i % 251)
    await engine.events.publish(name, outgoing(new Uint8Array(0)))
    await engine.events.publish(name, outgoing(large))
    const [first, second] = await inbox.take(2)
    assert.ok(first && second)
    assertBytes(first.body, new Uint8Array(0))
    assertBytes(second.body, large)
  }),

  contractCase('events - events arrive in the order of publishing', async ({ engine, channel }) => {
    const name = channel('order')
    const { inbox } = await listen(engine, name)
    await publishAll(engine, name, numbered(100))
    await Promise.all(numbered(100, 'n').map((body) => engine.events.publish(name, outgoing(body))))
    assert.deepEqual(texts(await inbox.take(200)), [...numbered(100), ...numbered(100, 'n')])
  }),

  contractCase('events - a pattern without wildcards is one channel', async ({ engine, channel }) => {
    const name = channel('exact')
    const { inbox } = await listen(engine, name)
    for (const other of [`${name}.more`, `${name}x`, name.toUpperCase(), `a.${name}`]) {
      await engine.events.publish(other, outgoing(other))
    }
    await engine.events.publish(name, outgoing('mine'))
    assert.deepEqual(texts(await inbox.take(1)), ['mine'])
  }),

  contractCase('events - * matches one token in any position', async ({ engine, channel }) => {
    const root = channel('star')
    const { inbox: last } = await listen(engine, `${root}.*`)
    const { inbox: middle } = await listen(engine, `${root}.*.end`)
    for (const name of ['', '.a', '.a.end', '.b', '.b.end', '.a.b.end', '.a.other']) {
      await engine.events.publish(`${root}${name}`, outgoing(name))
    }
    await publishAll(engine, `${root}.last`, ['last'])
    await publishAll(engine, `${root}.x.end`, ['end'])
    assert.deepEqual(texts(await last.take(3)), ['.a', '.b', 'last'])
    assert.deepEqual(texts(await middle.take(3)), ['.a.end', '.b.end', 'end'])
  }),

  contractCase('events - > matches one token or more', async ({ engine, channel }) => {
    const root = channel('rest')
    const { inbox } = await listen(engine, `${root}.>`)
    const { inbox: mixed } = await listen(engine, `${root}.*.x.>`)
    for (const name of ['', '.a', '.a.x', '.a.x.b', '.a.x.b.c', 'y.z']) {
      await engine.events.publish(`${root}${name}`, outgoing(name))
    }
    await publishAll(engine, `${root}.b.x.end`, ['end'])
    assert.deepEqual(texts(await inbox.take(5)), ['.a', '.a.x', '.a.x.b', '.a.x.b.c', 'end'])
    assert.deepEqual(texts(await mixed.take(3)), ['.a.x.b', '.a.x.b.c', 'end'])
  }),

  contractCase('events - a star inside a token is an ordinary character', async ({ engine, channel }) => {
    const root = channel('literal')
    const { inbox } = await listen(engine, `${root}.a*`)
    const { inbox: arrow } = await listen(engine, `${root}.b>c`)
    await publishAll(engine, `${root}.ab`, ['no'])
    await publishAll(engine, `${root}.a*`, ['star'])
    await publishAll(engine, `${root}.bc`, ['no'])
    await publishAll(engine, `${root}.b>c`, ['arrow'])
    assert.deepEqual(texts(await inbox.take(1)), ['star'])
    assert.deepEqual(texts(await arrow.take(1)), ['arrow'])
  }),

  isolatedCase('M8 - events: wildcards never match the broker’s own channels', async ({ engine, channel }) => {
    const own = `_AGENTS_.${channel('own')}`
    const inboxes = []
    for (const pattern of ['>', '*.*', '*.>', '*']) inboxes.push((await listen(engine, pattern)).inbox)
    await engine.events.publish(own, outgoing('internal'))
    const user = channel('user')
    await engine.events.publish(user, outgoing('single'))
    await engine.events.publish(`${user}.two`, outgoing('double'))
    const [all, two, rest, one] = inboxes
    assert.ok(all && two && rest && one)
    const mine = (inbox: Inbox<Message>) =>
      texts(inbox.items.filter((event) => event.channel.startsWith(user) || event.channel === own))
    await all.until(() => mine(all).length === 2, 'both user events')
    await two.until(() => mine(two).length === 1, 'one user event')
    await rest.until(() => mine(rest).length === 1, 'one user event')
    await one.until(() => mine(one).length === 1, 'one user event')
    assert.deepEqual(
      [mine(all), mine(two), mine(rest), mine(one)],
      [['single', 'double'], ['double'], ['double'], ['single']],
    )
  }),

  isolatedCase(
    'M8 - events: a pattern with their prefix matches the broker’s own channels',
    async ({ engine, channel }) => {
      const own = `_AGENTS_.${channel('own')}`
      const { inbox } = await listen(engine, own)
      const { inbox: wide } = await listen(engine, '_AGENTS_.>')
      await engine.events.publish(own, outgoing('internal'))
      assert.deepEqual(texts(await inbox.take(1)), ['internal'])
      await wide.until((events) => events.some((event) => event.channel === own), 'the internal event')
    },
  ),

  contractCase('events - every subscriber without a group gets every event', async ({ engine, channel }) => {
    const name = channel('all')
    const listeners = await Promise.all([1, 2, 3].map(() => listen(engine, name)))
    await publishAll(engine, name, numbered(10))
    for (const { inbox } of listeners) assert.deepEqual(texts(await inbox.take(10)), numbered(10))
  }),

  contractCase('events - an exact and a wildcard subscription both get the event', async ({ engine, channel }) => {
    const root = channel('both')
    const exact = await listen(engine, `${root}.x`)
    const wild = await listen(engine, `${root}.*`)
    await publishAll(engine, `${root}.x`, numbered(5))
    assert.deepEqual(texts(await exact.inbox.take(5)), numbered(5))
    assert.deepEqual(texts(await wild.inbox.take(5)), numbered(5))
  }),

  contractCase('events - each event goes to one subscriber of a group', async ({ engine, channel }) => {
    const name = channel('group')
    const shared = new Inbox<string>()
    for (let member = 0; member < 3; member += 1) {
      await engine.events.subscribe(name, { group: 'workers' }, (event) => shared.push(text(event)))
    }
    const alone = await listen(engine, name)
    const other = await listen(engine, name, { group: 'others' })
    await publishAll(engine, name, numbered(60))
    await alone.inbox.take(60)
    await other.inbox.take(60)
    await shared.take(60)
    assert.deepEqual(shared.items.toSorted(), numbered(60).toSorted())
    assert.deepEqual(texts(alone.inbox.items), numbered(60))
    assert.deepEqual(texts(other.inbox.items), numbered(60))
  }),

  contractCase('events - a group continues when a subscriber leaves', async ({ engine, channel }) => {
    const name = channel('group-leaves')
    const leaving = await listen(engine, name, { group: 'g' })
    const staying = await listen(engine, name, { group: 'g' })
    await publishAll(engine, name, numbered(10))
    await eventually(() => assert.equal(leaving.inbox.items.length + staying.inbox.items.length, 10))
    await leaving.subscription.close()
    const before = staying.inbox.items.length
    await publishAll(engine, name, numbered(10, 'n'))
    assert.deepEqual(texts((await staying.inbox.take(before + 10)).slice(before)), numbered(10, 'n'))
  }),

  contractCase('events - the subscribers of a wildcard group share events', async ({ engine, channel }) => {
    const root = channel('wild-group')
    const shared = new Inbox<string>()
    for (let member = 0; member < 2; member += 1) {
      await engine.events.subscribe(`${root}.*`, { group: 'g' }, (event) => shared.push(text(event)))
    }
    for (const body of numbered(20)) await engine.events.publish(`${root}.${body}`, outgoing(body))
    await shared.take(20)
    await pause(50)
    assert.deepEqual(shared.items.toSorted(), numbered(20).toSorted())
  }),

  contractCase('events - later subscribers do not get earlier events', async ({ engine, channel }) => {
    const name = channel('nothing-kept')
    await publishAll(engine, name, ['before'])
    const { inbox } = await listen(engine, name)
    await publishAll(engine, name, ['after'])
    assert.deepEqual(texts(await inbox.take(1)), ['after'])
  }),

  contractCase('events - a closed subscription gets no more events', async ({ engine, channel }) => {
    const name = channel('close')
    const closing = await listen(engine, name)
    const staying = await listen(engine, name)
    await publishAll(engine, name, ['before'])
    await closing.inbox.take(1)
    await closing.subscription.close()
    await closing.subscription.close()
    assert.equal(await within(closing.subscription.closed, 'the subscription to end'), undefined)
    await publishAll(engine, name, ['after'])
    assert.deepEqual(texts(await staying.inbox.take(2)), ['before', 'after'])
    assert.deepEqual(texts(closing.inbox.items), ['before'])
  }),

  contractCase('events - await using closes a subscription', async ({ engine, channel }) => {
    const name = channel('dispose')
    const inbox = new Inbox<Message>()
    {
      await using subscription = await engine.events.subscribe(name, {}, inbox.push)
      assert.ok(subscription.closed instanceof Promise)
      await publishAll(engine, name, ['inside'])
      await inbox.take(1)
    }
    const { inbox: staying } = await listen(engine, name)
    await publishAll(engine, name, ['outside'])
    await staying.take(1)
    assert.deepEqual(texts(inbox.items), ['inside'])
  }),

  contractCase('events - aborting the signal closes the subscription', async ({ engine, channel }) => {
    const name = channel('abort')
    const leaving = new AbortController()
    const { inbox, subscription } = await listen(engine, name, { signal: leaving.signal })
    const { inbox: staying } = await listen(engine, name)
    leaving.abort(new Error('gone'))
    assert.equal(await within(subscription.closed, 'the subscription to end'), undefined)
    await publishAll(engine, name, ['after'])
    await staying.take(1)
    assert.deepEqual(texts(inbox.items), [])
    const reason = new Error('gone before it began')
    await rejectsBecause(reason, engine.events.subscribe(name, { signal: AbortSignal.abort(reason) }, inbox.push))
  }),

  contractCase('events - a listener may close its own subscription', async ({ engine, channel }) => {
    const name = channel('close-inside')
    const closed = new Inbox<string>()
    const subscription: Subscription = await engine.events.subscribe(name, {}, (event) => {
      closed.push(text(event))
      void subscription.close()
    })
    const { inbox: staying } = await listen(engine, name)
    await publishAll(engine, name, ['one'])
    await within(subscription.closed, 'the subscription to end')
    await publishAll(engine, name, ['two'])
    await staying.take(2)
    assert.deepEqual(closed.items, ['one'])
  }),

  contractCase('events - a listener that throws does not affect the others', async ({ engine, channel }) => {
    const name = channel('throws')
    await engine.events.subscribe(name, {}, () => {
      throw new Error('of the listener')
    })
    const { inbox } = await listen(engine, name)
    await publishAll(engine, name, numbered(3))
    assert.deepEqual(texts(await inbox.take(3)), numbered(3))
  }),

  contractCase('events - publishing without a subscriber succeeds', async ({ engine, channel }) => {
    await publishAll(engine, channel('nobody'), numbered(3))
  }),
]
