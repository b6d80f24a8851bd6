import { expect, test } from 'vitest'

import { ADMIN, ALICE, BOB, card, openBench, watched } from './registry-bench.ts'

test('registry - a registered agent is there with what the server set', async () => {
  const { node } = await openBench()
  const { operations, hooks } = watched()
  const registry = await node({ hooks })
  const before = Date.now()
  const registered = await registry.register(card('a1', { 'x-own': [1] }), ALICE)
  expect(registered).toMatchObject({ agent_id: 'a1', registered_by: 'alice', protocolVersions: ['1.0'], 'x-own': [1] })
  expect(Date.parse(registered.registered_at)).toBeGreaterThanOrEqual(before)
  expect(registered.last_seen).toBe(registered.registered_at)
  expect(registry.get('a1')).toEqual(registered)
  expect(registry.list()).toEqual([registered])
  await registry.heartbeat('a1', ALICE)
  await expect(registry.heartbeat('a1', BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await expect(registry.deregister('a1', BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await registry.deregister('a1', ADMIN)
  expect(registry.size).toBe(0)
  expect(operations).toEqual([
    'register success a1',
    'heartbeat success a1',
    'heartbeat error a1 AGENT_OWNED',
    'deregister error a1 AGENT_OWNED',
    'deregister success a1',
  ])
})
