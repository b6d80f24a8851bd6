import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import type { AgentLimitEvent, RegistryCaller } from '../src/index.ts'
import { agentShares } from '../src/index.ts'
import { ALICE, BOB, card, openBench } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

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
