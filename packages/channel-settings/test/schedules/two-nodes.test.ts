import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { expect, onTestFinished, test } from 'vitest'

import type { FireOutcome } from '../../src/index.ts'
import { Schedules } from '../../src/index.ts'

interface Node {
  readonly schedules: Schedules
  readonly system: BrokerHandle
  readonly engine: Engine
  readonly outcomes: FireOutcome[]
}

async function openNode(url: string, node?: Engine['node']): Promise<Node> {
  const engine = await openNatsEngine({ servers: [url] })
  onTestFinished(() => engine.close())
  const { system } = createBroker(engine)
  const outcomes: FireOutcome[] = []
  const schedules = await Schedules.open(system, {
    // A node without an id sends at once, as nodes do that do not hear each other.
    engine: node === undefined ? engine : { node, otherNodes: () => [] },
    fired: (outcome) => outcomes.push(outcome),
    failed: (error) => {
      throw error
    },
  })
  onTestFinished(() => schedules[Symbol.asyncDispose]())
  return { schedules, system, engine, outcomes }
}

const COUNT = 10

/** Writes schedules with one due time each, half of them for a queue, and returns the ids of all messages. */
async function messagesOf([writer, other]: readonly [Node, Node]): Promise<readonly string[]> {
  const at = new Date(Date.now() + 1_500).toISOString()
  const ids = Array.from({ length: COUNT }, (_, i) => `s${i}`)
  await Promise.all(
    ids.map((id, i) => {
      const target = { type: i % 2 === 0 ? ('queues' as const) : ('events_store' as const), channel: 'due' }
      return writer.schedules.set({ id, at, target, message: { body: id } }, 'operator')
    }),
  )
  for (const { schedules } of [writer, other]) {
    await expect
      .poll(() => schedules.list().filter(({ record }) => record.sent !== undefined).length, { timeout: 20_000 })
      .toBe(COUNT)
  }
  // Both nodes have tried, or know that the other one has sent.
  const [queued, stored] = await Promise.all([
    writer.system.queues.peek('due', { maxMessages: 100 }),
    writer.system.eventsStore.read('due', { maxMessages: 100 }),
  ])
  return [...queued, ...stored].map(({ tags }) => tags['schedule_id'] ?? '').toSorted()
}

const SENT = Array.from({ length: COUNT }, (_, i) => `s${i}`)

test.skipIf(NATS_SERVER === undefined)(
  'schedules - of two nodes one sends each message',
  { timeout: 60_000 },
  async () => {
    await using nats = await NatsServer.start()
    const nodes = [await openNode(nats.url), await openNode(nats.url)] as const
    await expect
      .poll(() => nodes.map(({ engine }) => engine.otherNodes?.().length), { timeout: 10_000 })
      .toEqual([1, 1])
    expect(await messagesOf(nodes)).toEqual(SENT)
    expect(nodes.flatMap(({ outcomes }) => outcomes).filter((outcome) => outcome === 'sent')).toHaveLength(COUNT)
  },
)

test.skipIf(NATS_SERVER === undefined)(
  'schedules - nodes that do not hear each other send at the same time, and the servers keep one message',
  { timeout: 60_000 },
  async () => {
    await using nats = await NatsServer.start()
    const nodes = [
      await openNode(nats.url, { id: 'one', clockSkewed: false }),
      await openNode(nats.url, { id: 'two', clockSkewed: false }),
    ] as const
    expect(await messagesOf(nodes)).toEqual(SENT)
    expect(nodes.flatMap(({ outcomes }) => outcomes).filter((outcome) => outcome === 'sent')).toHaveLength(COUNT)
  },
)
