import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import type { GroupSettings, SettingsEntry } from '@signalbox/broker-core/engine'
import type { NatsEngine } from '@signalbox/engine-nats'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, test, vi } from 'vitest'

import { queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const ORDERED = { mode: 'ordered', max_in_flight_per_group: 1 } as const
const PATIENT = { timeout: 20_000 }

/** @param groups @default none, as if the entry were removed */
function entryOf(groups?: GroupSettings): SettingsEntry {
  return { type: 'queues', match: 'q', source: 'api', ...(groups ? { groups } : {}) }
}

function setGroups(engine: NatsEngine, match: string, groups: GroupSettings | undefined): void {
  engine.settings.replace(groups ? [{ type: 'queues', match, source: 'api', groups }] : [])
}

/** Returns the number of consumers of the only queue. */
async function consumersOf(url: string): Promise<number> {
  const connection = await connect({ servers: url })
  try {
    const { streams } = await jetstreamManager(connection)
    for await (const { config, state } of streams.list()) if (/-q-/.test(config.name)) return state.consumer_count
    return 0
  } finally {
    await connection.close()
  }
}

describe.skipIf(NATS_SERVER === undefined)('groups', () => {
  test('groups - a queue gets the consumers of its partitions with the settings, and loses them', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.channels.create('queues', 'q')
    expect(await consumersOf(server.url)).toBe(1)
    setGroups(node, 'q', ORDERED)
    await vi.waitFor(async () => expect(await consumersOf(server.url)).toBe(17), PATIENT)
    await node.queues.send('q', queued('a', { tags: { group: 'a' } }))
    const [delivery] = await node.queues.receive('q', RECEIVE)
    await node.queues.ack([delivery?.receipt ?? ''], RECEIVE.clientId)
    setGroups(node, 'q', undefined)
    await vi.waitFor(async () => expect(await consumersOf(server.url)).toBe(1), PATIENT)
    await node.queues.send('q', queued('b', { tags: { group: 'a' } }))
    expect((await node.queues.receive('q', RECEIVE)).map(({ message }) => text(message))).toEqual(['b'])
  })

  test('groups - a queue with messages cannot get groups, or lose them', async () => {
    const node = await openNode(await startServer())
    expect(await node.settingProblem(entryOf(ORDERED))).toBeUndefined()
    await node.queues.send('q', queued('x'))
    expect(await node.settingProblem(entryOf(ORDERED))).toMatch('the queue "q" is not empty (messages: 1)')
    expect(await node.settingProblem(entryOf())).toBeUndefined()
    setGroups(node, 'q', ORDERED)
    expect(await node.settingProblem(entryOf())).toMatch('the queue "q" is not empty (messages: 1)')
    expect(await node.settingProblem(entryOf({ mode: 'fair', max_in_flight_per_group: 0 }))).toBeUndefined()
    await node.queues.purge('q')
    expect(await node.settingProblem(entryOf())).toBeUndefined()
  })

  test('groups - a message that is on its way to a node is not received after a purge', PATIENT, async () => {
    const engine = await openNode(await startServer())
    setGroups(engine, 'q', ORDERED)
    await engine.channels.create('queues', 'q')
    const grouped = (group: string, body: string) => engine.queues.send('q', queued(body, { tags: { group } }))
    const purgedButReceived: string[] = []
    for (let n = 0; n < 40; n++) {
      await grouped('a', `leased ${n}`)
      const [head] = await engine.queues.receive('q', RECEIVE)
      // The request for the head is over; those of the other groups wait.
      const message = `purged ${n}`
      await Promise.all([grouped('b', message), engine.queues.purge('q')])
      const kept = await engine.queues.peek('q', { maxMessages: 10 })
      await grouped('b', `next ${n}`)
      const received = [head, ...(await engine.queues.receive('q', RECEIVE))]
      for (const delivery of received) if (delivery) await engine.queues.ack([delivery.receipt], RECEIVE.clientId)
      const isKept = kept.some((one) => text(one) === message)
      if (!isKept && received.some((delivery) => delivery && text(delivery.message) === message)) {
        purgedButReceived.push(message)
      }
      await engine.queues.purge('q')
    }
    expect(purgedButReceived).toEqual([])
  })

  test('groups - another node settles a lease of a group after the first node has stopped', async () => {
    const server = await startServer()
    const first = await openNode(server)
    const second = await openNode(server)
    for (const node of [first, second]) setGroups(node, 'q', ORDERED)
    await first.queues.send('q', queued('a1', { tags: { group: 'a' } }))
    await first.queues.send('q', queued('a2', { tags: { group: 'a' } }))
    const [delivery] = await first.queues.receive('q', RECEIVE)
    await first.close()
    expect(await second.queues.ack([delivery?.receipt ?? ''], RECEIVE.clientId)).toEqual({ settled: 1, lost: [] })
    expect((await second.queues.receive('q', RECEIVE)).map(({ message }) => text(message))).toEqual(['a2'])
  })
})
