import assert from 'node:assert/strict'

import type { ContractCase } from './contract-case.ts'
import {
  contractCase,
  eventually,
  Inbox,
  PATIENCE_MS,
  pause,
  rejectsBecause,
  rejectsWith,
  within,
} from './contract-case.ts'
import { numbered, outgoing, reply, text } from './messages.ts'

const PATIENT = { timeoutMs: PATIENCE_MS }

/** Cases for the subscribers of commands and queries. */
export const requestSubscriberCases: readonly ContractCase[] = [
  contractCase('requests - subscribers without a group form one group', async ({ engine, channel }) => {
    const name = channel('no-group')
    const seen = new Inbox<string>()
    for (let member = 0; member < 3; member += 1) {
      await engine.requests.serve('commands', name, {}, async (request) => {
        seen.push(text(request))
        return reply('done')
      })
    }
    for (const body of numbered(30)) await engine.requests.request('commands', name, outgoing(body), PATIENT)
    assert.deepEqual(seen.items, numbered(30), 'each request is handled once')
  }),

  contractCase(
    'requests - each request goes to one subscriber of each group, and the first reply is returned',
    async ({ engine, channel }) => {
      const name = channel('groups')
      const seen = { one: new Inbox<string>(), two: new Inbox<string>() }
      for (const group of ['one', 'one', 'two', 'two'] as const) {
        await engine.requests.serve('commands', name, { group }, async (request) => {
          seen[group].push(text(request))
          return reply(group)
        })
      }
      for (const body of numbered(20)) {
        const winner = text(await engine.requests.request('commands', name, outgoing(body), PATIENT))
        assert.ok(winner === 'one' || winner === 'two')
      }
      assert.deepEqual((await seen.one.take(20)).toSorted(), numbered(20).toSorted())
      assert.deepEqual((await seen.two.take(20)).toSorted(), numbered(20).toSorted())
      await pause(50)
      assert.deepEqual([seen.one.items.length, seen.two.items.length], [20, 20])
    },
  ),

  contractCase(
    'requests - subscribers without a group form a group in addition to the named ones',
    async ({ engine, channel }) => {
      const name = channel('beside')
      const [named, plain] = [new Inbox<string>(), new Inbox<string>()]
      await engine.requests.serve('commands', name, { group: 'g' }, async (request) => {
        named.push(text(request))
        return reply('named')
      })
      await engine.requests.serve('commands', name, {}, async (request) => {
        plain.push(text(request))
        return reply('plain')
      })
      await engine.requests.request('commands', name, outgoing('x'), PATIENT)
      assert.deepEqual([await named.take(1), await plain.take(1)], [['x'], ['x']])
    },
  ),

  contractCase('requests - a reply of one group aborts the signals of the others', async ({ engine, channel }) => {
    const name = channel('loser')
    const slow = new Inbox<AbortSignal>()
    await engine.requests.serve('queries', name, { group: 'slow' }, ({ signal }) => {
      slow.push(signal)
      return new Promise(() => {})
    })
    await engine.requests.serve('queries', name, { group: 'fast' }, async () => {
      await slow.take(1)
      return reply('fast')
    })
    assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'fast')
    await eventually(() => assert.equal(slow.items[0]?.aborted, true))
  }),

  contractCase('M11 - requests: a new subscriber gets a waiting request', async ({ engine, channel }) => {
    for (const type of ['commands', 'queries'] as const) {
      const name = channel('late')
      const request = engine.requests.request(type, name, outgoing('waiting'), PATIENT)
      await pause(100)
      await engine.requests.serve(type, name, {}, async (request) => reply(`late answer to ${text(request)}`))
      assert.equal(text(await request), 'late answer to waiting')
    }
  }),

  contractCase('M11 - requests: a new subscriber gets every waiting request once', async ({ engine, channel }) => {
    const name = channel('late-many')
    const requests = numbered(10).map((body) => engine.requests.request('queries', name, outgoing(body), PATIENT))
    await pause(100)
    const seen = new Inbox<string>()
    for (let member = 0; member < 2; member += 1) {
      await engine.requests.serve('queries', name, {}, async (request) => {
        seen.push(text(request))
        return reply(text(request))
      })
    }
    assert.deepEqual((await Promise.all(requests)).map(text), numbered(10))
    await pause(50)
    assert.deepEqual(seen.items.toSorted(), numbered(10).toSorted())
  }),

  contractCase('requests - a new subscriber does not get a request in progress', async ({ engine, channel }) => {
    const name = channel('taken')
    const release = Promise.withResolvers<void>()
    const [first, second] = [new Inbox<string>(), new Inbox<string>()]
    await engine.requests.serve('commands', name, {}, async (request) => {
      first.push(text(request))
      await release.promise
      return reply('first')
    })
    const request = engine.requests.request('commands', name, outgoing('x'), PATIENT)
    await first.take(1)
    await engine.requests.serve('commands', name, {}, async (request) => {
      second.push(text(request))
      return reply('second')
    })
    await pause(150)
    release.resolve()
    assert.equal(text(await request), 'first')
    assert.deepEqual(second.items, [])
  }),

  contractCase(
    'M11 - requests: a subscriber that left before the request does not count',
    async ({ engine, channel }) => {
      const name = channel('went')
      const subscription = await engine.requests.serve('queries', name, {}, async () => reply('never'))
      await subscription.close()
      await subscription.close()
      assert.equal(await within(subscription.closed, 'the subscription to end'), undefined)
      await rejectsWith('NO_SUBSCRIBER', engine.requests.request('queries', name, outgoing('x'), { timeoutMs: 200 }))
    },
  ),

  contractCase('requests - a group continues when a subscriber leaves', async ({ engine, channel }) => {
    const name = channel('leaves')
    const leaving = await engine.requests.serve('queries', name, {}, async () => reply('leaving'))
    await engine.requests.serve('queries', name, {}, async () => reply('staying'))
    await leaving.close()
    for (let i = 0; i < 10; i += 1) {
      assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'staying')
    }
  }),

  contractCase('requests - aborting the signal ends the subscription', async ({ engine, channel }) => {
    const name = channel('abort')
    const leaving = new AbortController()
    const subscription = await engine.requests.serve('queries', name, { signal: leaving.signal }, async () =>
      reply('never'),
    )
    leaving.abort(new Error('gone'))
    assert.equal(await within(subscription.closed, 'the subscription to end'), undefined)
    await rejectsWith('NO_SUBSCRIBER', engine.requests.request('queries', name, outgoing('x'), { timeoutMs: 200 }))
    const reason = new Error('aborted before the call')
    await rejectsBecause(
      reason,
      engine.requests.serve('queries', name, { signal: AbortSignal.abort(reason) }, async () => reply('never')),
    )
  }),

  contractCase('requests - a subscription continues when its channel is deleted', async ({ engine, channel }) => {
    const name = channel('deleted')
    await engine.requests.serve('queries', name, {}, async () => reply('still here'))
    await engine.requests.request('queries', name, outgoing('x'), PATIENT)
    await engine.channels.delete('queries', name)
    assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'still here')
  }),

  contractCase('requests - the broker’s own channels work like any other', async ({ engine, channel }) => {
    const name = `_AGENTS_.agents/${channel('agent')}`
    await engine.requests.serve('queries', name, {}, async () => reply('agent'))
    assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'agent')
  }),
]
