import type { ServerResponse } from 'node:http'

import type { BrokerHandle, Message } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { TestAgent } from './agent.ts'
import { beginStream, startAgent, taskEvent, write } from './agent.ts'
import { StreamClient } from './client.ts'
import type { Host } from './host.ts'
import { openHost } from './host.ts'

const INTERRUPTED = { code: -32603, message: 'stream interrupted' }

/** Listens to both channels of a stream. */
async function wiretap(system: BrokerHandle, streamId: string): Promise<{ frames: Message[]; controls: string[] }> {
  const frames: Message[] = []
  const controls: string[] = []
  await system.events.subscribe(`_AGENTS_.stream/${streamId}`, {}, (message) => frames.push(message))
  await system.events.subscribe(`_AGENTS_.stream/${streamId}/control`, {}, (message) =>
    controls.push(decodeText(message.body) ?? ''),
  )
  return { frames, controls }
}

/** An agent that sends an event whenever the test says so. */
async function steered(): Promise<{
  url: string
  send: (text: string) => void
  open: () => number
  cancelled: readonly string[]
}> {
  let opened: ServerResponse | undefined
  const agent = await startAgent((response) => {
    opened = beginStream(response)
  })
  return { ...agent, send: (text) => void opened?.write(text) }
}

describe('A11 - the channel', () => {
  test('A11 - frames are numbered from 1; credit is sent on a timer and names the consumed frames; heartbeats too', async () => {
    const agent = await steered()
    const host = await openHost(agent.url, { limits: { creditMs: 30, heartbeatMs: 30 } })
    const client = await StreamClient.open(host.base)
    const tap = await wiretap(host.system, host.streamIds[0] ?? '')
    agent.send(taskEvent('status', 1))
    await client.seen(1)
    agent.send(taskEvent('status', 2))
    await client.seen(2)
    await until(() => tap.controls.includes('{"consumed":2,"window_bytes":262144}'))
    await until(() => tap.frames.some(({ tags }) => tags['beat'] === '2'))
    expect(tap.frames.filter(({ tags }) => tags['n'] !== undefined).map(({ tags }) => tags['n'])).toEqual(['1', '2'])
    agent.send(taskEvent('done', 3))
    await client.all()
    await until(() => tap.controls.at(-1) === '{"consumed":3,"window_bytes":262144}')
    expect(tap.frames.findLast(({ tags }) => tags['n'] !== undefined)?.tags).toEqual({ n: '3', end: 'done' })
  })

  test('A11 - half a window of bytes, or of frames, brings credit before the clock does', async () => {
    const agent = await steered()
    const host = await openHost(agent.url, { limits: { creditMs: 60_000, noCreditMs: 120_000 } })
    const client = await StreamClient.open(host.base)
    const tap = await wiretap(host.system, host.streamIds[0] ?? '')
    for (let n = 1; n <= 32; n++) {
      agent.send(taskEvent('status', n))
      await client.seen(n)
    }
    await until(() => tap.controls.length === 1)
    expect(tap.controls).toEqual(['{"consumed":32,"window_bytes":262144}'])
    agent.send(taskEvent('artifact', 'x'.repeat(140_000)))
    await client.seen(33)
    await until(() => tap.controls.length === 2)
    client.cut()
    await until(() => tap.controls.includes('{"cancel":true}'))
  })

  test('A11 - events over the window travel in parts, and arrive whole', async () => {
    const agent = await steered()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    const tap = await wiretap(host.system, host.streamIds[0] ?? '')
    const large = 'ä🙂'.repeat(500_000)
    agent.send(taskEvent('status', 1) + taskEvent('artifact', large) + taskEvent('done', large))
    const events = await client.all()
    expect(events.map(({ event }) => event)).toEqual(['task.status', 'task.artifact', 'task.done'])
    expect(events[1]?.envelope.payload === large && events[2]?.envelope.payload === large).toBe(true)
    const sizes = tap.frames.map(({ body }) => body.length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(262_144)
    expect(sizes.length).toBeGreaterThan(20)
    await until(() => host.budget.usedBytes === 0)
  })

  test('A11 - bytes in transit stay within the window, with a slow agent or a slow client', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      for (let n = 0; n < 400; n++)
        await write(response, taskEvent('artifact', `${n} ${'x'.repeat((n * 977) % 90_000)}`))
      response.end(taskEvent('done', 'end'))
    })
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base, { paused: true })
    const onWay: number[] = []
    let bytes = 0
    let most = 0
    let mostFrames = 0
    let acknowledged = 0
    await host.system.events.subscribe(`_AGENTS_.stream/${host.streamIds[0]}`, {}, ({ body, tags }) => {
      if (tags['n'] === undefined) return
      onWay.push(body.length)
      bytes += body.length
      most = Math.max(most, bytes)
      mostFrames = Math.max(mostFrames, onWay.length)
    })
    await host.system.events.subscribe(`_AGENTS_.stream/${host.streamIds[0]}/control`, {}, ({ body }) => {
      const { consumed } = JSON.parse(decodeText(body) ?? '') as { consumed: number }
      for (; acknowledged < consumed; acknowledged++) bytes -= onWay.shift() ?? 0
    })
    for (let n = 0; n < 20; n++) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      client.resume()
      await new Promise((resolve) => setTimeout(resolve, 5))
      client.pause()
    }
    client.resume()
    expect((await client.all()).length).toBe(401)
    // The tap began a moment after the stream: what it missed can only make its sum smaller than the truth.
    expect(most).toBeGreaterThan(100_000)
    expect(most).toBeLessThanOrEqual(262_144)
    expect(mostFrames).toBeLessThanOrEqual(64)
  })

  test('A11 - the memory limit of the node applies to all streams together, and every stream continues', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(50_000))
      for (let n = 0; n < 100 && (await write(response, event)); n++);
      response.end(taskEvent('done', 'end'))
    })
    const budgetBytes = 300_000
    const host = await openHost(agent.url, { budgetBytes, limits: { creditMs: 100 } })
    const stuck = await Promise.all(Array.from({ length: 4 }, () => StreamClient.open(host.base, { paused: true })))
    let most = 0
    const watch = setInterval(() => (most = Math.max(most, host.budget.usedBytes)), 1)
    const reading = await Promise.all(Array.from({ length: 4 }, () => StreamClient.open(host.base)))
    for (const client of reading) expect((await client.all()).length).toBe(101)
    for (const client of stuck) client.resume()
    for (const client of stuck) expect((await client.all()).length).toBe(101)
    clearInterval(watch)
    expect(most).toBeLessThanOrEqual(budgetBytes + 8 * 16_384)
    await until(() => host.openRelays() === 0)
    await until(() => host.budget.usedBytes === 0)
  })
})

describe('A11 - errors on the channel', () => {
  test('A11 - a gap is an interruption, and cancels', async () => {
    const agent = await steered()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    agent.send(taskEvent('status', 1))
    await client.seen(1)
    await host.system.events.publish(`_AGENTS_.stream/${host.streamIds[0]}`, {
      body: encodeText(taskEvent('status', 'after the gap')),
      tags: { n: '3' },
    })
    const events = await client.all()
    expect(events.map(({ envelope: { payload } }) => payload)).toEqual([1, INTERRUPTED])
    await until(() => agent.open() === 0 && agent.cancelled.length === 1 && host.ends.length === 1)
    expect(host.ends).toEqual([{ outcome: 'error', errorCode: -32603 }])
  })

  test('A11 - the loss of the last frames shows at the next heartbeat', async () => {
    const agent = await steered()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    await host.system.events.publish(`_AGENTS_.stream/${host.streamIds[0]}`, {
      body: new Uint8Array(0),
      tags: { beat: '1' },
    })
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([INTERRUPTED])
    await until(() => agent.cancelled.length === 1)
  })

  test('A11 - a repeated frame is used once, and an invalid one is ignored', async () => {
    const agent = await steered()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    agent.send(taskEvent('status', 1))
    await client.seen(1)
    const channel = `_AGENTS_.stream/${host.streamIds[0]}`
    await host.system.events.publish(channel, { body: encodeText(taskEvent('status', 'again')), tags: { n: '1' } })
    await host.system.events.publish(channel, { body: encodeText('garbage') })
    await host.system.events.publish(`${channel}/control`, { body: encodeText('garbage') })
    await host.system.events.publish(`${channel}/control`, { body: encodeText('{"consumed":"x"}') })
    await host.system.events.publish(`${channel}/control`, {
      body: encodeText('{"consumed":99,"window_bytes":262144}'),
    })
    agent.send(taskEvent('done', 2))
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([1, 2])
  })

  test('A11 - silence is an interruption, and cancels', async () => {
    const agent = await steered()
    const limits = { heartbeatMs: 60_000, silenceMs: 100 }
    const host = await openHost(agent.url, { limits })
    const client = await StreamClient.open(host.base)
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([INTERRUPTED])
    await until(() => agent.open() === 0 && agent.cancelled.length === 1)
  })

  test('A11 - a stream whose agent takes longer for its headers than a node may be silent is not interrupted', async () => {
    const agent = await startAgent(async (response) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      beginStream(response)
      setTimeout(() => response.end(taskEvent('done', 1)), 300)
    })
    const host = await openHost(agent.url, { limits: { silenceMs: 1_000, heartbeatMs: 100 } })
    const client = await StreamClient.open(host.base)
    expect((await client.all()).map(({ event }) => event)).toEqual(['task.done'])
  })

  test('A11 - heartbeats keep a stream on which nothing happens', async () => {
    const agent = await steered()
    const limits = { heartbeatMs: 20, silenceMs: 1_500, creditMs: 20, noCreditMs: 1_500 }
    const host = await openHost(agent.url, { limits })
    const client = await StreamClient.open(host.base)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    agent.send(taskEvent('done', 1))
    expect((await client.all()).map(({ event }) => event)).toEqual(['task.done'])
  })

  test("A11 - without credit the agent's connection is aborted and the agent notified", async () => {
    const agent = await steered()
    const limits = { creditMs: 60_000, noCreditMs: 100, heartbeatMs: 20, silenceMs: 300 }
    const host = await openHost(agent.url, { limits })
    const client = await StreamClient.open(host.base)
    await until(() => agent.open() === 0 && agent.cancelled.length === 1)
    expect(host.relayEnds).toEqual([{ cancelled: true }])
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([INTERRUPTED])
  })

  test('A11 - an interruption in the middle of an event in parts leaves no half event', async () => {
    const agent = await steered()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    const channel = `_AGENTS_.stream/${host.streamIds[0]}`
    await host.system.events.publish(channel, {
      body: encodeText('event: task.status\ndata: {"ha'),
      tags: { n: '1', more: '1' },
    })
    await host.system.events.publish(channel, { body: encodeText('lf"'), tags: { n: '3' } })
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([INTERRUPTED])
  })

  test('A11 - reassembly is bounded', async () => {
    const agent = await steered()
    const host = await openHost(agent.url, { limits: { maxEventBytes: 10_000 } })
    const client = await StreamClient.open(host.base)
    const channel = `_AGENTS_.stream/${host.streamIds[0]}`
    for (let n = 1; n <= 12; n++) {
      await host.system.events.publish(channel, { body: new Uint8Array(1_000), tags: { n: String(n), more: '1' } })
    }
    expect((await client.all()).map(({ envelope: { payload } }) => payload)).toEqual([
      { code: -32603, message: 'agent response too large' },
    ])
  })
})

/** What one random stream does. */
interface Scenario {
  /** Bytes of each event's payload. */
  readonly sizes: readonly number[]
  /** After how many events the agent rests, and for how many milliseconds. */
  readonly rests: ReadonlyMap<number, number>
  /** After how many events the client stops reading, and for how many milliseconds. */
  readonly pauses: ReadonlyMap<number, number>
  readonly terminal: 'done' | 'error' | 'none'
}

const WINDOW_BYTES = 16_384

const WINDOW_FRAMES = 8

let scenario: Scenario | undefined

let agent: TestAgent | undefined

let host: Host | undefined

beforeAll(async () => {
  agent = await startAgent(async (response) => {
    beginStream(response)
    const { sizes, rests, terminal } = scenario!
    for (const [n, size] of sizes.entries()) {
      await write(response, taskEvent('artifact', { n, fill: '·'.repeat(size / 2) }))
      const rest = rests.get(n)
      if (rest !== undefined) await new Promise((resolve) => setTimeout(resolve, rest))
    }
    response.end(terminal === 'none' ? '' : taskEvent(terminal, 'end'))
  }, afterAll)
  host = await openHost(agent.url, {
    limits: { windowBytes: WINDOW_BYTES, windowFrames: WINDOW_FRAMES, creditMs: 100 },
    budgetBytes: 65_536,
    cleanUp: afterAll,
  })
})

/** The most bytes and frames that were on the way at a time, by an account of its own of what passes on the channels. */
async function account(streamId: string): Promise<{ readonly bytes: number; readonly frames: number; sum: number }> {
  const onWay: number[] = []
  const most = { bytes: 0, frames: 0, sum: 0 }
  let acknowledged = 0
  const { events } = host!.system
  await events.subscribe(`_AGENTS_.stream/${streamId}/control`, {}, ({ body }) => {
    const { consumed = 0 } = JSON.parse(decodeText(body) ?? '') as { consumed?: number }
    for (; acknowledged < consumed; acknowledged++) most.sum -= onWay.shift() ?? 0
  })
  await events.subscribe(`_AGENTS_.stream/${streamId}`, {}, ({ body, tags }) => {
    if (tags['n'] === undefined) return
    onWay.push(body.length)
    most.sum += body.length
    most.bytes = Math.max(most.bytes, most.sum)
    most.frames = Math.max(most.frames, onWay.length)
  })
  return most
}

async function run(next: Scenario): Promise<void> {
  scenario = next
  const client = await StreamClient.open(host!.base, { paused: true })
  const most = await account(host!.streamIds.at(-1) ?? '')
  client.resume()
  for (const [after, pause] of [...next.pauses].sort(([a], [b]) => a - b)) {
    if (after >= next.sizes.length) continue
    await client.seen(after)
    client.pause()
    await new Promise((resolve) => setTimeout(resolve, pause))
    client.resume()
  }
  const events = await client.all()
  const last = events.at(-1)
  expect(events.slice(0, -1).map(({ envelope: { payload } }) => payload.n)).toEqual([...next.sizes.keys()])
  expect(events.slice(0, -1).map(({ envelope: { payload } }) => payload.fill.length)).toEqual(
    next.sizes.map((size) => Math.floor(size / 2)),
  )
  expect(last?.event).toBe(next.terminal === 'done' ? 'task.done' : 'task.error')
  expect(events.filter(({ event }) => event === 'task.done' || event === 'task.error').length).toBe(1)
  expect(most.bytes).toBeLessThanOrEqual(WINDOW_BYTES)
  expect(most.frames).toBeLessThanOrEqual(WINDOW_FRAMES)
  await until(() => host!.openRelays() === 0 && host!.active() === 0)
  expect(host!.budget.usedBytes).toBe(0)
}

const ms = fc.integer({ min: 0, max: 15 })

const places = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 60 }), ms), { maxLength: 4, size: 'max' })
  .map((pairs) => new Map(pairs))

const scenarios = fc.record({
  sizes: fc.array(fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 60_000 })), {
    maxLength: 60,
    size: 'max',
  }),
  rests: places,
  pauses: places,
  terminal: fc.constantFrom('done' as const, 'error' as const, 'none' as const),
})

test('A11 - random sizes and speeds: nothing lost, in order, one terminal event, bounded on the way', async () => {
  await fc.assert(fc.asyncProperty(scenarios, run), { numRuns: 40, seed: 11, endOnFailure: true })
})
