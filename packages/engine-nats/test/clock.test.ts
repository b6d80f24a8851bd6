import type { NatsEngineProblem, NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const DAY_MS = 86_400_000
const PATIENT = { timeout: 20_000 }

const realNow = Date.now

/** Sets the clock of this process so far from what it is; NATS' own stays right. */
function setClock(offsetMs: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + offsetMs)
}

afterEach(() => {
  vi.restoreAllMocks()
})

async function clockOf(node: NatsEngine) {
  const { ok, checks } = await node.health()
  const { ok: isRight, detail } = checks.find(({ name }) => name === 'clock') ?? {}
  return { ok, isRight, detail }
}

describe.skipIf(NATS_SERVER === undefined)('clocks', () => {
  test('CL-18 - clock: a node whose clock is a day ahead reports it, and deletes no message as expired', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    expect(await clockOf(node)).toMatchObject({ ok: true, isRight: true })
    for (const body of ['a', 'b']) await node.queues.send('q', queued(body, { expirationMs: 3_600_000 }))
    await node.queues.send('q', queued('delayed', { delayMs: 3_600_000 }))
    setClock(DAY_MS)
    // It lives, and is not ready. A slow answer makes the difference look smaller.
    expect(await clockOf(node)).toMatchObject({
      ok: true,
      isRight: false,
      detail: expect.stringMatching(/86(?:400|3\d\d) s ahead of .*NATS/),
    })
    const states = async () => (await node.channels.info('queues', 'q'))?.queue
    expect(await states()).toMatchObject({ waiting: 2, delayed: 1, expired: 0 })
    expect(await node.queues.peek('q', { maxMessages: 5 })).toHaveLength(2)
    const [first] = await node.queues.receive('q', RECEIVE)
    expect(first && text(first.message)).toBe('a')
    expect(await node.queues.nack([first?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
    for (const times of [{ expirationMs: 1_000 }, { delayMs: 1_000 }]) {
      await expect(node.queues.send('q', queued('x', times))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
      await expect(node.queues.sendBatch('q', [queued('x', times)])).rejects.toThrow(/clock/)
    }
    setClock(0)
    await vi.waitFor(async () => expect(await clockOf(node)).toMatchObject({ isRight: true }), PATIENT)
    expect(await states()).toMatchObject({ delayed: 1, expired: 0 })
    const deliveries = await node.queues.receive('q', { ...RECEIVE, maxMessages: 5 })
    expect(deliveries.map(({ message }) => text(message))).toEqual(['a', 'b'])
    const reported = problems.filter(({ message }) => message.includes('clock'))
    expect(reported.map(({ kind }) => kind)).toEqual(['warning', 'healed'])
  })

  test('CL-18 - clock: a node that starts with its clock behind is not ready from the start', async () => {
    const server = await startServer()
    setClock(-DAY_MS)
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    expect(await clockOf(node)).toMatchObject({ ok: true, isRight: false, detail: expect.stringContaining('behind') })
    expect(problems.map(({ message }) => message)).toContainEqual(expect.stringContaining('clock'))
  })

  test('CL-18 - clock: a node whose clock is seconds off logs a warning and works', async () => {
    const server = await startServer()
    setClock(4_000)
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    expect(await clockOf(node)).toMatchObject({ isRight: true })
    expect(problems.map(({ kind, message }) => [kind, message])).toContainEqual([
      'warning',
      // A slow answer makes the difference look smaller.
      expect.stringMatching(/clock .* [1-4] s ahead/),
    ])
    await node.queues.send('q', queued('x', { expirationMs: 60_000 }))
    expect(await node.queues.receive('q', RECEIVE)).toHaveLength(1)
  })
})
