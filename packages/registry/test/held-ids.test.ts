import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { HeldIds } from '../src/directory/held-ids.ts'
import { DISCOVERY_CHANNEL } from '../src/index.ts'
import { ADMIN, ALICE, BOB, card, openBench, watched } from './registry-bench.ts'

const TTL = { agentTtlSeconds: 0.1 }

test("R4 - held ids: after its agent expired an id stays its owner's, over a restart too, until an Admin frees it", async () => {
  const { node, restart } = await openBench()
  const one = await node(TTL)
  await one.register(card('a1'), ALICE)
  await until(() => one.size === 0)
  const refusal = {
    code: 'AGENT_OWNED',
    message: expect.stringMatching(
      /^the agent_id "a1" is held until \d{4}-\S+Z for the principal whose agent expired; choose another agent_id, or ask an Admin to delete this one$/,
    ),
  }
  await expect(one.register(card('a1'), BOB)).rejects.toMatchObject(refusal)
  await restart()
  const { failures, hooks } = watched()
  const again = await node({ hooks })
  expect(failures).toEqual([])
  await expect(again.register(card('a1'), BOB)).rejects.toMatchObject(refusal)
  // It is not registered, whoever asks.
  for (const caller of [ALICE, BOB]) {
    await expect(again.heartbeat('a1', caller)).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
    await expect(again.deregister('a1', caller)).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  }
  expect(await again.find('a1')).toBeUndefined()
  await again.deregister('a1', ADMIN)
  await expect(again.deregister('a1', ADMIN)).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  expect(await again.register(card('a1'), BOB)).toMatchObject({ registered_by: 'bob' })
})

test('R4 - held ids: the owner takes its id again, and so does an Admin; one that was deregistered is free', async () => {
  const { node } = await openBench()
  const brief = await node(TTL)
  for (const id of ['a1', 'a2']) await brief.register(card(id), ALICE)
  await until(() => brief.size === 0)
  await brief.close()
  const registry = await node()
  expect(await registry.register(card('a1'), ALICE)).toMatchObject({ registered_by: 'alice' })
  expect(await registry.register(card('a2'), ADMIN)).toMatchObject({ registered_by: 'root' })
  await registry.deregister('a1', ALICE)
  expect(await registry.register(card('a1'), BOB)).toMatchObject({ registered_by: 'bob' })
})

test('R4 - held ids: after the hold any caller may register the id, and no trace of the hold is left', async () => {
  const { node, system } = await openBench()
  const registry = await node({ ...TTL, idHoldSeconds: 1 })
  await registry.register(card('a1'), ALICE)
  await until(() => registry.size === 0)
  await expect(registry.register(card('a1'), BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await until(async () => (await system.eventsStore.getLast(DISCOVERY_CHANNEL, 'a1'))?.tombstone === true)
  expect(await registry.register(card('a1'), BOB)).toMatchObject({ registered_by: 'bob' })
})

test('R4 - held ids: while all callers are anonymous nothing is held', async () => {
  const { node, system } = await openBench()
  const registry = await node(TTL)
  await registry.register(card('a1'), { clientId: 'anonymous', account: 'address:127.0.0.1' })
  await until(() => registry.size === 0)
  expect(await system.eventsStore.getLast(DISCOVERY_CHANNEL, 'a1')).toHaveProperty('tombstone', true)
})

test('R4 - held ids: one owner holds 1,000 of them, and the oldest is freed for the next', () => {
  const freed: string[] = []
  const held = new HeldIds(1_000_000, (agentId) => void freed.push(agentId))
  const hold = { owner: 'alice', untilMs: Date.now() + 1_000_000 }
  for (let i = 0; i < 1_002; i++) held.set(`a${i}`, hold, i)
  held.set('b1', { ...hold, owner: 'bob' }, 2_000)
  held.set('past', { owner: 'bob', untilMs: 1 }, 2_001)
  expect([freed, held.size]).toEqual([['a0', 'a1', 'past'], 1_001])
  held.close()
})
