import { until } from '@signalbox/testkit/until'
import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import type { StoredCard } from '../src/card/agent-card.ts'
import { AgentEntry, LocalDirectory } from '../src/directory/local-directory.ts'
import { DISCOVERY_CHANNEL } from '../src/index.ts'
import { ALICE, card, openBench } from './registry-bench.ts'

const AGENTS = 1_000
const ROUNDS = 5

test('R6 - scale: the history follows the number of agents, not the number of changes ever made', async () => {
  const bench = await openBench()
  const registry = await bench.node()
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(
      Array.from({ length: AGENTS }, (_, i) =>
        registry.register(card(`agent-${i}`, { version: String(round) }), ALICE),
      ),
    )
  }
  for (let i = 0; i < 20 * AGENTS; i++) await registry.heartbeat(`agent-${i % AGENTS}`, ALICE)
  const before = registry.list()
  const state = async () => (await bench.system.channels.info('events_store', DISCOVERY_CHANNEL)).eventsStore
  await until(async () => (await state())?.entries === AGENTS)
  expect((await state())?.lastSequence).toBe(AGENTS * ROUNDS)
  await bench.restart()
  const again = await bench.node()
  expect(again.list().map(({ agent_id, version }) => [agent_id, version])).toEqual(
    before.map(({ agent_id }) => [agent_id, String(ROUNDS - 1)]),
  )
  expect(before).toHaveLength(AGENTS)
})

test('R3 - scale: lists equal a filter and sort of all agents', () => {
  const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g')
  const tags = fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 })
  const step = fc.record({ id: ids, tags: fc.option(tags, { nil: undefined }) })
  const filter = fc.record({
    skillTags: tags,
    limit: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
    after: fc.option(fc.constantFrom('a', 'c', 'cc', 'h'), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), filter, (steps, { skillTags, limit, after }) => {
      const directory = new LocalDirectory()
      const model = new Map<string, readonly string[]>()
      for (const [at, { id, tags: carried }] of steps.entries()) {
        const deletes = carried === undefined
        expect(deletes && directory.delete(id)).toBe(deletes && model.delete(id))
        if (deletes) continue
        directory.set(id, entryOf(id, carried, at))
        model.set(id, carried)
      }
      const expected = [...model]
        .filter(([, carried]) => skillTags.length === 0 || skillTags.some((tag) => carried.includes(tag)))
        .map(([id]) => id)
        .filter((id) => after === undefined || id > after)
        .sort()
        .slice(0, limit)
      const listed = directory.list({
        skillTags,
        ...(limit === undefined ? {} : { limit }),
        ...(after === undefined ? {} : { after }),
      })
      expect(listed.map(({ stored }) => stored.agent_id)).toEqual(expected)
      expect(directory.size).toBe(model.size)
    }),
    { seed: 3, numRuns: cases(500) },
  )
})

/** Each tag on a skill of its own, the first one on two. */
function entryOf(id: string, tags: readonly string[], sequence: number): AgentEntry {
  const skills = [...tags, ...tags.slice(0, 1)].map((tag) => ({ id: tag, name: tag, tags: [tag] }))
  const stored: StoredCard = {
    agent_id: id,
    name: id,
    url: 'http://a',
    skills,
    protocolVersions: ['1.0'],
    registered_by: 'alice',
    registered_at: '2026-01-01T00:00:00.000Z',
  }
  return new AgentEntry(
    { card: stored, account: 'client:alice', revision: String(sequence), since: 1, lastSeenMs: 1, instances: [] },
    sequence,
  )
}
