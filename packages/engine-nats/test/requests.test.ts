import type { Reply, RequestOptions } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type { NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, describe, expect, test, vi } from 'vitest'

import { cuttable } from './support/cuttable.ts'
import { outgoing, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }

let collect: () => void

beforeAll(() => {
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc') as () => void
})

function reply(body: string): Reply {
  return { executed: true, error: '', body: encodeText(body), metadata: '', tags: {} }
}

/** Sends a request whose message nothing here keeps. */
function send(node: NatsEngine, channel: string, options: RequestOptions): [Promise<Reply>, WeakRef<object>] {
  const message = outgoing('x'.repeat(1_000))
  return [node.requests.request('queries', channel, message, options), new WeakRef(message.body)]
}

async function collected(...refs: readonly WeakRef<object>[]): Promise<void> {
  await vi.waitFor(() => {
    collect()
    expect(refs.map((ref) => ref.deref())).toEqual(refs.map(() => undefined))
  }, PATIENT)
}

describe.skipIf(NATS_SERVER === undefined)('requests whose caller is gone', () => {
  test('requests - a request that no node has accepted is dropped at once, also if a node subscribes later', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const leaving = new AbortController()
    const [request, body] = send(one, 'q', { timeoutMs: 60_000, callerGone: leaving.signal })
    const outcome = request.catch((error: unknown) => error)
    await vi.waitFor(async () => expect(await one.channels.list()).toHaveLength(1), PATIENT)
    leaving.abort(new Error('gone'))
    expect(await outcome).toMatchObject({ message: 'gone' })
    await collected(body)
    const seen: string[] = []
    await two.requests.serve('queries', 'q', {}, async (message) => {
      seen.push(text(message))
      return reply('')
    })
    await one.requests.request('queries', 'q', outgoing('later'), { timeoutMs: 10_000 })
    expect(seen).toEqual(['later'])
    const late = one.requests.request('queries', 'q', outgoing('never'), {
      timeoutMs: 60_000,
      callerGone: leaving.signal,
    })
    await expect(late).rejects.toThrow('gone')
    expect(seen).toEqual(['later'])
  })

  test('requests - a request that a subscriber has accepted continues, and neither node keeps its body', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const leaving = new AbortController()
    const answers: ((reply: Reply) => void)[] = []
    const signals: AbortSignal[] = []
    const bodies: WeakRef<object>[] = []
    await two.requests.serve('queries', 'q', {}, ({ body, signal }) => {
      bodies.push(new WeakRef(body))
      signals.push(signal)
      return new Promise((resolve) => answers.push(resolve))
    })
    const [request, sent] = send(one, 'q', { timeoutMs: 60_000, callerGone: leaving.signal })
    await vi.waitFor(() => expect(answers).toHaveLength(1), PATIENT)
    await collected(sent, ...bodies)
    leaving.abort(new Error('gone'))
    answers[0]?.(reply('all the same'))
    expect(text(await request)).toBe('all the same')
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  })

  test('requests - a request that is accepted while its caller disconnects continues', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const leaving = new AbortController()
    const signals: AbortSignal[] = []
    await two.requests.serve('queries', 'q', {}, async ({ signal }) => {
      signals.push(signal)
      // The requester's node cannot know yet that it was taken.
      leaving.abort(new Error('gone'))
      return reply('taken')
    })
    const options = { timeoutMs: 60_000, callerGone: leaving.signal }
    expect(text(await one.requests.request('queries', 'q', outgoing('x'), options))).toBe('taken')
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  })
})

describe.skipIf(NATS_SERVER === undefined)('answers', () => {
  test('requests - an answer for a requester on the same node is not sent to the servers', async () => {
    const server = await startServer({ monitored: true })
    const [one, two] = [await openNode(server), await openNode(server)]
    const large = 'x'.repeat(4_000_000)
    await one.requests.serve('queries', 'q', {}, () => Promise.resolve(reply(large)))
    const received = async (): Promise<number> =>
      ((await server.monitor('/varz', 5_000)) as { in_bytes: number }).in_bytes
    const sentFor = async (node: NatsEngine): Promise<number> => {
      const before = await received()
      const answer = await node.requests.request('queries', 'q', outgoing('x'), { timeoutMs: 10_000 })
      expect(text(answer)).toBe(large)
      return (await received()) - before
    }
    expect(await sentFor(one)).toBeLessThan(1_000_000)
    expect(await sentFor(two)).toBeGreaterThan(4_000_000)
  })
})

describe.skipIf(NATS_SERVER === undefined)('requests of a node that is cut off', () => {
  test.each([false, true])(
    'requests - a request that a subscriber may have is REQUEST_TIMEOUT, also if its caller is gone: %s',
    async (leaves) => {
      const server = await startServer()
      const network = await cuttable(server.url)
      const [one, two] = [await openNode(server, { servers: [network.url] }), await openNode(server)]
      const seen: string[] = []
      await two.requests.serve('queries', 'q', {}, async (message) => {
        // Its node has not reported yet that it accepted the request.
        network.cut()
        seen.push(text(message))
        return reply('')
      })
      const leaving = new AbortController()
      const options = { timeoutMs: leaves ? 60_000 : 2_000, callerGone: leaving.signal }
      const outcome = one.requests.request('queries', 'q', outgoing('x'), options).catch((error: unknown) => error)
      await vi.waitFor(async () => expect((await one.health()).ok).toBe(false), PATIENT)
      if (leaves) leaving.abort(new Error('gone'))
      expect(await outcome).toMatchObject({ code: 'REQUEST_TIMEOUT' })
      expect(seen).toEqual(['x'])
    },
  )
})
