import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

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
import { assertBytes, assertTags, numbered, outgoing, PRODUCER, reply, text } from './messages.ts'

const TYPES = ['commands', 'queries'] as const
const PATIENT = { timeoutMs: PATIENCE_MS }

/** Cases for commands and queries. */
export const requestCases: readonly ContractCase[] = [
  contractCase('requests - a request and its answer arrive unchanged', async ({ engine, channel }) => {
    const tags = Object.fromEntries([
      ['__proto__', 'data'],
      ['', 'empty'],
      ['ключ', '🙂\n'],
    ])
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    for (const type of TYPES) {
      const name = channel(type)
      const id = randomUUID()
      const before = Date.now()
      await engine.requests.serve(type, name, {}, async (request) => {
        assert.equal(request.id, id)
        assert.equal(request.channel, name)
        assert.equal(request.clientId, PRODUCER)
        assertBytes(request.body, bytes)
        assert.equal(request.metadata, 'größe\u0000')
        assertTags(request.tags, tags)
        assert.ok(Math.abs(request.timestamp - before) < 5_000)
        assert.ok(Math.abs(request.deadline - before - PATIENCE_MS) < 5_000)
        assert.equal(request.signal.aborted, false)
        return reply(bytes.toReversed(), { metadata: 'reply\u0000', tags: { ...tags, own: 'tag' } })
      })
      const answer = await engine.requests.request(
        type,
        name,
        outgoing(bytes, { id, metadata: 'größe\u0000', tags }),
        PATIENT,
      )
      assert.equal(answer.error, '', 'the handler found the request as it should be')
      assert.equal(answer.executed, true)
      assertBytes(answer.body, bytes.toReversed())
      assert.equal(answer.metadata, 'reply\u0000')
      assertTags(answer.tags, { ...tags, own: 'tag' })
    }
  }),

  contractCase('requests - bodies of 0 bytes and of 1 MiB are sent in both directions', async ({ engine, channel }) => {
    const name = channel('sizes')
    await engine.requests.serve('queries', name, {}, async ({ body }) => reply(body))
    for (const size of [0, Math.min(1024 * 1024, engine.limits.maxMessageBytes)]) {
      const body = new Uint8Array(size).map((_, i) => i % 251)
      assertBytes((await engine.requests.request('queries', name, outgoing(body), PATIENT)).body, body)
    }
  }),

  contractCase('requests - a subscriber may reject with a reason', async ({ engine, channel }) => {
    for (const type of TYPES) {
      const name = channel('reject')
      await engine.requests.serve(type, name, {}, async () =>
        reply('details', { executed: false, error: 'not on a sunday', tags: { code: '7' } }),
      )
      const answer = await engine.requests.request(type, name, outgoing('x'), PATIENT)
      assert.equal(answer.executed, false)
      assert.equal(answer.error, 'not on a sunday')
      assert.equal(text(answer), 'details')
      assertTags(answer.tags, { code: '7' })
    }
  }),

  contractCase(
    'requests - a handler that throws rejects with a general text and continues',
    async ({ engine, channel }) => {
      const name = channel('throws')
      let calls = 0
      await engine.requests.serve('commands', name, {}, async () => {
        calls += 1
        if (calls === 1) throw new Error('password=secret')
        return reply('fine')
      })
      const answer = await engine.requests.request('commands', name, outgoing('x'), PATIENT)
      assert.equal(answer.executed, false)
      assert.notEqual(answer.error, '')
      assert.doesNotMatch(answer.error, /secret/, 'the error itself is private to the handler')
      assert.equal(text(await engine.requests.request('commands', name, outgoing('x'), PATIENT)), 'fine')
    },
  ),

  contractCase('requests - a handler that throws synchronously rejects too', async ({ engine, channel }) => {
    const name = channel('throws-at-once')
    await engine.requests.serve('commands', name, {}, () => {
      throw new Error('password=secret')
    })
    const answer = await engine.requests.request('commands', name, outgoing('x'), PATIENT)
    assert.equal(answer.executed, false)
    assert.doesNotMatch(answer.error, /secret/)
  }),

  contractCase('M11 - requests: no subscriber until the time-out is NO_SUBSCRIBER', async ({ engine, channel }) => {
    for (const type of TYPES) {
      const started = performance.now()
      const error = await rejectsWith(
        'NO_SUBSCRIBER',
        engine.requests.request(type, channel('nobody'), outgoing('x'), { timeoutMs: 300 }),
      )
      assert.ok(performance.now() - started >= 250, 'it waited for a subscriber until its time-out')
      assert.equal(error.details['timeoutMs'], 300)
    }
  }),

  contractCase(
    'requests - onlyIfSubscribed does not wait for a subscriber and creates no channel',
    async ({ engine, channel }) => {
      for (const type of TYPES) {
        const name = channel('only')
        const only = { ...PATIENT, onlyIfSubscribed: true }
        const started = performance.now()
        await rejectsWith('NO_SUBSCRIBER', engine.requests.request(type, name, outgoing('x'), only))
        assert.ok(performance.now() - started < PATIENCE_MS / 2, 'it rejected before its time-out')
        assert.equal(await engine.channels.info(type, name), undefined)
        const subscription = await engine.requests.serve(type, name, {}, async () => reply('there'))
        assert.equal(text(await engine.requests.request(type, name, outgoing('x'), only)), 'there')
        await subscription.close()
        await rejectsWith('NO_SUBSCRIBER', engine.requests.request(type, name, outgoing('x'), only))
      }
    },
  ),

  contractCase(
    'M11 - requests: a subscriber that does not answer in time is REQUEST_TIMEOUT',
    async ({ engine, channel }) => {
      for (const type of TYPES) {
        const name = channel('silent')
        const seen = new Inbox<AbortSignal>()
        await engine.requests.serve(type, name, {}, ({ signal }) => {
          seen.push(signal)
          return new Promise(() => {})
        })
        const started = performance.now()
        const error = await rejectsWith(
          'REQUEST_TIMEOUT',
          engine.requests.request(type, name, outgoing('x'), { timeoutMs: 300 }),
        )
        assert.ok(performance.now() - started >= 250, 'it waited until its time-out')
        assert.equal(error.details['timeoutMs'], 300)
        const [signal] = await seen.take(1)
        await eventually(() => assert.equal(signal?.aborted, true, 'the handler’s signal is aborted'))
      }
    },
  ),

  contractCase('requests - an answer after the time-out is dropped', async ({ engine, channel }) => {
    const name = channel('late-answer')
    const release = Promise.withResolvers<void>()
    let calls = 0
    await engine.requests.serve('queries', name, {}, async () => {
      calls += 1
      if (calls > 1) return reply('the second answer')
      await release.promise
      return reply('too late')
    })
    await rejectsWith('REQUEST_TIMEOUT', engine.requests.request('queries', name, outgoing('1'), { timeoutMs: 300 }))
    release.resolve()
    assert.equal(text(await engine.requests.request('queries', name, outgoing('2'), PATIENT)), 'the second answer')
  }),

  contractCase(
    'requests - aborting a request stops the wait and aborts the handler’s signal',
    async ({ engine, channel }) => {
      const name = channel('abort')
      const seen = new Inbox<AbortSignal>()
      await engine.requests.serve('queries', name, {}, ({ signal }) => {
        seen.push(signal)
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
        })
      })
      const leaving = new AbortController()
      const reason = new Error('the client disconnected')
      const request = engine.requests.request('queries', name, outgoing('x'), { ...PATIENT, signal: leaving.signal })
      const [signal] = await seen.take(1)
      leaving.abort(reason)
      await rejectsBecause(reason, request)
      await eventually(() => assert.equal(signal?.aborted, true))
    },
  ),

  contractCase('requests - aborting a request without a subscriber stops the wait', async ({ engine, channel }) => {
    const name = channel('abort-nobody')
    const leaving = new AbortController()
    const reason = new Error('the client disconnected')
    const request = engine.requests.request('queries', name, outgoing('x'), { ...PATIENT, signal: leaving.signal })
    await pause(50)
    leaving.abort(reason)
    await rejectsBecause(reason, request)
    const seen = new Inbox<string>()
    await engine.requests.serve('queries', name, {}, async (request) => {
      seen.push(text(request))
      return reply('answer')
    })
    await engine.requests.request('queries', name, outgoing('y'), PATIENT)
    assert.deepEqual(seen.items, ['y'], 'the aborted request reaches no subscriber')
  }),

  contractCase('requests - a request with an aborted signal is not sent', async ({ engine, channel }) => {
    const name = channel('aborted')
    const seen = new Inbox<string>()
    await engine.requests.serve('commands', name, {}, async (request) => {
      seen.push(text(request))
      return reply('answer')
    })
    const reason = new Error('aborted before the call')
    await rejectsBecause(
      reason,
      engine.requests.request('commands', name, outgoing('x'), { ...PATIENT, signal: AbortSignal.abort(reason) }),
    )
    await engine.requests.request('commands', name, outgoing('y'), PATIENT)
    assert.deepEqual(seen.items, ['y'])
  }),

  contractCase(
    'requests - the handler’s signal is not aborted when it answers in time',
    async ({ engine, channel }) => {
      const name = channel('quiet')
      await engine.requests.serve('queries', name, {}, async ({ signal }) => {
        await pause(20)
        return reply(String(signal.aborted))
      })
      assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'false')
    },
  ),

  contractCase('requests - each concurrent request gets its own answer', async ({ engine, channel }) => {
    const name = channel('concurrent')
    await engine.requests.serve('queries', name, {}, async (request) => {
      // Later requests get their answers first.
      await pause(Math.max(0, 40 - Number(text(request).slice(1)) / 2))
      return reply(`answer to ${text(request)}`)
    })
    const bodies = numbered(80)
    const answers = await Promise.all(
      bodies.map((body) => engine.requests.request('queries', name, outgoing(body), PATIENT)),
    )
    assert.deepEqual(
      answers.map(text),
      bodies.map((body) => `answer to ${body}`),
    )
  }),

  contractCase('requests - a slow handler does not delay other requests', async ({ engine, channel }) => {
    const name = channel('slow')
    const release = Promise.withResolvers<void>()
    await engine.requests.serve('queries', name, {}, async (request) => {
      if (text(request) === 'slow') await release.promise
      return reply(text(request))
    })
    const slow = engine.requests.request('queries', name, outgoing('slow'), PATIENT)
    assert.equal(text(await engine.requests.request('queries', name, outgoing('fast'), PATIENT)), 'fast')
    release.resolve()
    assert.equal(text(await slow), 'slow')
  }),

  contractCase('requests - a handler may send requests', async ({ engine, channel }) => {
    const [outer, inner] = [channel('outer'), channel('inner')]
    await engine.requests.serve('queries', inner, {}, async () => reply('from within'))
    await engine.requests.serve('queries', outer, {}, () =>
      engine.requests.request('queries', inner, outgoing('x'), PATIENT),
    )
    const answer = await within(engine.requests.request('queries', outer, outgoing('x'), PATIENT), 'the answer')
    assert.equal(text(answer), 'from within')
  }),

  contractCase('C1 - requests: commands and queries are different name spaces', async ({ engine, channel }) => {
    const name = channel('both')
    await engine.requests.serve('commands', name, {}, async () => reply('command'))
    await engine.requests.serve('queries', name, {}, async () => reply('query'))
    assert.equal(text(await engine.requests.request('commands', name, outgoing('x'), PATIENT)), 'command')
    assert.equal(text(await engine.requests.request('queries', name, outgoing('x'), PATIENT)), 'query')
    const lone = channel('lone')
    await engine.requests.serve('commands', lone, {}, async () => reply('command'))
    await rejectsWith('NO_SUBSCRIBER', engine.requests.request('queries', lone, outgoing('x'), { timeoutMs: 200 }))
  }),
]
