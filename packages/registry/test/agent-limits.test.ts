import { fairTurns } from '@signalbox/http-kit/internal'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { MaxAgents } from '../src/directory/agent-limits.ts'
import type { AgentLimitEvent, RegistryCaller } from '../src/index.ts'
import { agentShares } from '../src/index.ts'
import { ALICE, BOB, card, openBench } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

test('R7 - MaxAgents: a call learns that its agent was one too many, also when another node has taken it back already', () => {
  const registered = new Set(['a1'])
  const limit = new MaxAgents(1, registered)
  const late = limit.reserve('a1')
  registered.delete('a1')
  late.take()
  registered.add('other').add('a1')
  expect(limit.exceededBy('a1', 7)).toBe(true)
  registered.delete('a1')
  limit.forget('a1')
  expect(limit.isExcess('a1', 7)).toBe(true)
  late.release()
  registered.add('a1')
  expect(limit.isExcess('a1', 7)).toBe(false)

  expect(limit.exceededBy('a1', 9)).toBe(true)
  limit.forget('a1')
  expect(limit.isExcess('a1', 9)).toBe(false)
})

test('R7 - MaxAgents: an entry that was compacted away before this node read it was one too many', () => {
  const registered = new Set(['other'])
  const limit = new MaxAgents(1, registered)
  expect(limit.isExcess('taken-back', 7)).toBe(true)
  expect(limit.isExcess('other', 6)).toBe(false)
  expect(new MaxAgents(0, registered).isExcess('taken-back', 7)).toBe(false)
})

test('R11 - shares: a caller owns as many as it may, whichever node took them, and others have their own', async () => {
  const { node, restart } = await openBench()
  const limited: AgentLimitEvent[] = []
  const options = { maxAgentsOf: () => 3, hooks: { limited: (event: AgentLimitEvent) => void limited.push(event) } }
  const [one, two] = [await node(options), await node(options)]
  await one.register(card('a1'), ALICE)
  await two.register(card('a2'), ALICE)
  await until(() => one.size === 2)
  const race = await Promise.allSettled(['a3', 'a4', 'a5', 'a3'].map((id) => one.register(card(id), ALICE)))
  expect(race.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  const event: AgentLimitEvent = { limit: 'caller_agents', account: 'client:alice' }
  expect(limited).toEqual([event, event])
  // What it owns it may bring up to date, and others are none of its business.
  await one.register(card('a1', { version: '2' }), ALICE)
  await one.register(card('b1'), BOB)
  await restart()
  const again = await node(options)
  await expect(again.register(card('a6'), ALICE)).rejects.toMatchObject({
    code: 'CALLER_AGENT_LIMIT',
    status: 429,
    message: 'this caller owns 3 agents, the maximum (LIMITS_CALLER_AGENTS); deregister some, or raise the limit',
    details: [{ limit: 'caller_agents', most: 3 }],
  })
  await again.deregister('a2', ALICE)
  await again.register(card('a6'), ALICE)
})

test('R11 - shares: without authentication the agents of a network address are counted', async () => {
  const { call } = await openServer({}, { maxAgents: 10, maxAgentsOf: () => 1 })
  expect((await call('POST /agents/register', card('a1'))).status).toBe(200)
  const { status, headers, body } = await call('POST /agents/register', card('a2'))
  expect([status, headers.get('retry-after'), body]).toEqual([
    429,
    null,
    {
      error: 'CALLER_AGENT_LIMIT',
      message:
        'your network address owns 1 agents, the maximum without authentication; deregister some, or authenticate',
      details: [{ limit: 'caller_agents', most: 1 }],
    },
  ])
})

test('R11 - shares: 1,000 for a verified caller; for a network address half of MaxAgents where that is more', () => {
  const address: RegistryCaller = { clientId: 'anonymous', account: 'address:192.0.2.1' }
  expect([agentShares(0)(ALICE), agentShares(0)(address)]).toEqual([1_000, 10_000])
  expect([agentShares(50)(ALICE), agentShares(50)(address)]).toEqual([1_000, 1_000])
  expect([agentShares(5_000)(ALICE), agentShares(5_000)(address)]).toEqual([1_000, 2_500])
  expect([agentShares(50, 7)(ALICE), agentShares(50, 0)(ALICE), agentShares(50, 0)(address)]).toEqual([7, 0, 0])
})

/** 20,000 empty arrays: 60 KB of text, and 1.4 MB of values. */
const LARGE = { metadata: { values: Array.from({ length: 20_000 }, () => []) } }

test('R11 - card memory: cards are refused before they fill the memory, and one owner gets half of it', async () => {
  const { node, restart } = await openBench()
  const options = { maxCardMemoryBytes: 7_000_000 }
  const one = await node(options)
  await one.register(card('a1', LARGE), ALICE)
  await one.register(card('a2'), ALICE)
  // The same again takes no more.
  await one.register(card('a1', LARGE), ALICE)
  const more = Promise.allSettled(['a3', 'a4', 'a5'].map((id) => one.register(card(id, LARGE), ALICE)))
  expect((await more).filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await restart()
  const again = await node(options)
  await expect(again.register(card('a6', LARGE), ALICE)).rejects.toMatchObject({
    code: 'CALLER_AGENT_LIMIT',
    message:
      "the cards of this caller's agents would take more than 3 MiB of memory; deregister some, or register smaller cards",
    details: [{ limit: 'card_bytes', most: 3_500_000 }],
  })
  await again.register(card('b1', LARGE), BOB)
  await again.register(card('b2', LARGE), BOB)
  await expect(again.register(card('c1', LARGE), { clientId: 'carol' })).rejects.toMatchObject({ code: 'AGENT_LIMIT' })
  await again.deregister('b1', BOB)
  await again.register(card('c1', LARGE), { clientId: 'carol' })
})

test('R11 - card memory: an owner of large cards rests before its next dear request, and others do not', async () => {
  const { node } = await openBench()
  const one = await node()
  fairTurns.arrived('client:dave')
  fairTurns.arrived('client:carla')
  await one.register(card('a1', LARGE), { clientId: 'carla', account: 'client:carla' })
  expect(fairTurns.turnAfterOthers('client:dave')).toBeUndefined()
  await expect(fairTurns.turnAfterOthers('client:carla')).resolves.toBeUndefined()
})
