import { decodeText } from '@signalbox/broker-core'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import type { TestAgent } from './agent.ts'
import { beginStream, startAgent, taskEvent, write } from './agent.ts'
import { StreamClient } from './client.ts'
import type { Host } from './host.ts'
import { openHost } from './host.ts'

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
