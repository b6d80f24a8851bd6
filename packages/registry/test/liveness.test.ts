import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { DelayQueue, HeldIds } from '../src/directory/liveness.ts'
import { DISCOVERY_CHANNEL } from '../src/index.ts'
import { Faults } from './faults.ts'
import { ADMIN, ALICE, BOB, card, openBench, watched } from './registry-bench.ts'

async function lastSequence(system: BrokerHandle): Promise<number> {
  const { eventsStore } = await system.channels.info('events_store', DISCOVERY_CHANNEL)
  return eventsStore?.lastSequence ?? 0
}

test('R5, REG-7 - liveness: an agent that is not heard of is removed on every node, and counted once', async () => {
  const { node } = await openBench()
  const [first, second] = [watched(), watched()]
  const one = await node({ agentTtlSeconds: 0.5, hooks: first.hooks })
  const two = await node({ agentTtlSeconds: 0.5, hooks: second.hooks })
  const reported: string[] = []
  two.onChange(({ kind, agentId }) => reported.push(`${kind} ${agentId}`))
  await one.register(card('a1'), ALICE)
  await until(() => reported.length === 2 && one.size === 0)
  expect(two.size).toBe(0)
  expect(reported).toEqual(['registered a1', 'removed a1'])
  await until(() => first.operations.length + second.operations.length === 2)
  expect([...first.operations, ...second.operations]).toEqual(['register success a1', 'expire success a1'])
  expect([...first.failures, ...second.failures]).toEqual([])
  await expect(one.heartbeat('a1', ALICE)).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  expect(await one.register(card('a1'), ALICE)).toMatchObject({ registered_by: 'alice' })
})

test('STATE-3, AGENT-11, R5 - liveness: heartbeats on one node keep an agent alive on all', async () => {
  const { node } = await openBench()
  const [one, two] = [await node({ agentTtlSeconds: 3 }), await node({ agentTtlSeconds: 3 })]
  const { last_seen: first } = await one.register(card('beats'), ALICE)
  await one.register(card('silent'), ALICE)
  const reported: string[] = []
  two.onChange(({ kind, agentId }) => reported.push(`${kind} ${agentId}`))
  let seen = first
  // The agent that sends them was registered first: it would expire before the other.
  while (!reported.includes('removed silent') || one.get('silent') !== undefined) {
    await delay(100)
    await one.heartbeat('beats', ALICE)
    const shown = one.get('beats')?.last_seen ?? ''
    expect(shown > seen).toBe(true)
    seen = shown
  }
  expect(reported.filter((line) => line.endsWith('beats')).filter((line) => line.startsWith('removed'))).toEqual([])
  expect(one.get('beats')?.registered_at).toBe(two.get('beats')?.registered_at)
})

test('R5 - liveness: the node that took the last heartbeat expires the agent one TTL after it', async () => {
  const { node } = await openBench()
  const [first, second] = [watched(), watched()]
  const two = await node({ agentTtlSeconds: 3, hooks: second.hooks })
  const one = await node({ agentTtlSeconds: 3, hooks: first.hooks })
  await one.register(card('a1'), ALICE)
  await delay(50)
  const beat = performance.now()
  // Too soon to be replicated at once: the other node hears of it later, and would expire the agent later.
  await one.heartbeat('a1', ALICE)
  await until(() => two.get('a1') !== undefined && two.get('a1')?.last_seen === one.get('a1')?.last_seen)
  await until(() => one.size === 0 && two.size === 0)
  expect(performance.now() - beat).toBeGreaterThan(2_990)
  await until(() => first.operations.length === 3)
  expect([first.operations.at(-1), second.operations]).toEqual(['expire success a1', []])
})

test('R6 - liveness: heartbeats replicate once in a fifth of the TTL, and the last one is not lost', async () => {
  const { node, system } = await openBench()
  const [one, two] = [await node({ agentTtlSeconds: 5 }), await node({ agentTtlSeconds: 5 })]
  await one.register(card('a1'), ALICE)
  const started = performance.now()
  const before = await lastSequence(system)
  for (let i = 0; i < 1_000; i++) await one.heartbeat('a1', ALICE)
  await delay(2)
  await one.heartbeat('a1', ALICE)
  const written = (await lastSequence(system)) - before
  expect(written).toBeLessThanOrEqual(Math.ceil((performance.now() - started) / 1_000))
  // Made good for when the fifth is over, without another heartbeat.
  await until(() => two.get('a1')?.last_seen === one.get('a1')?.last_seen)
  const after = await lastSequence(system)
  await delay(1_100)
  expect(await lastSequence(system)).toBe(after)
  await one.heartbeat('a1', ALICE)
  expect(await lastSequence(system)).toBe(after + 1)
})

test('R5, REG-8 - liveness: with a TTL of 0 no agent expires; the default is 300 s', async () => {
  const { node } = await openBench()
  for (const options of [{ agentTtlSeconds: 0 }, {}]) {
    const registry = await node(options)
    await registry.register(card('a1'), ALICE)
    await delay(300)
    await registry.heartbeat('a1', ALICE)
    expect(registry.size).toBe(1)
  }
  for (const agentTtlSeconds of [-1, Number.NaN])
    await expect(node({ agentTtlSeconds })).rejects.toThrow('agentTtlSeconds')
  for (const maxAgents of [-1, 1.5]) await expect(node({ maxAgents })).rejects.toThrow('maxAgents')
})

test('R5 - liveness: after a restart of everything the clock starts anew', async () => {
  const { node, restart } = await openBench()
  const first = await node({ agentTtlSeconds: 1 })
  await first.register(card('a1'), ALICE)
  await first.close()
  await delay(1_200)
  await restart()
  const opened = performance.now()
  const second = await node({ agentTtlSeconds: 1 })
  expect(second.size).toBe(1)
  await until(() => second.size === 0)
  expect(performance.now() - opened).toBeGreaterThan(990)
})

test('R5 - liveness: a node that missed a heartbeat does not expire an agent that another heard of', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const { operations, failures, hooks } = watched()
  const one = await node()
  await one.register(card('a1'), ALICE)
  const late = await node({ agentTtlSeconds: 1, hooks }, faults)
  faults.hold()
  await one.register(card('a1', { name: 'Again' }), ALICE)
  await delay(1_300)
  expect(one.get('a1')?.name).toBe('Again')
  expect(await one.find('a1')).toBeDefined()
  faults.release()
  await until(() => late.get('a1')?.name === 'Again')
  expect([operations, failures]).toEqual([[], []])
  await until(() => one.size === 0)
})

test('R5 - liveness: an expiry that fails while the store is unavailable is counted, and retried', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const { operations, failures, hooks } = watched()
  const registry = await node({ agentTtlSeconds: 0.4, hooks }, faults)
  await registry.register(card('a1'), ALICE)
  faults.away()
  await until(() => operations.includes('expire error a1 ENGINE_UNAVAILABLE'))
  expect(failures).toContain('the store is away')
  expect(registry.size).toBe(1)
  faults.back()
  await until(() => operations.includes('expire success a1') && registry.size === 0)
})

test('R6 - liveness: a heartbeat that could not be replicated fails, and the next one tries again', async () => {
  const { node, system } = await openBench()
  const faults = new Faults()
  const registry = await node({ agentTtlSeconds: 2 }, faults)
  await registry.register(card('a1'), ALICE)
  await delay(450)
  faults.away()
  await expect(registry.heartbeat('a1', ALICE)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  faults.back()
  const before = await lastSequence(system)
  await registry.heartbeat('a1', ALICE)
  expect(await lastSequence(system)).toBe(before + 1)
})

test('liveness - ids come out of the queue in the order of their last touch, once each', async () => {
  const due: string[] = []
  const queue = new DelayQueue(100, (ids) => due.push(...ids))
  for (let i = 0; i < 10_000; i++) queue.touch(`id-${i}`)
  for (let i = 0; i < 10_000; i += 2) queue.delete(`id-${i}`)
  queue.touch('id-1')
  expect([queue.has('id-1'), queue.has('id-2')]).toEqual([true, false])
  await until(() => due.length === 5_000)
  expect([due[0], due.at(-1), new Set(due).size]).toEqual(['id-3', 'id-1', 5_000])
  queue.touch('late')
  queue.touchAll()
  queue.close()
  await delay(150)
  expect(due).toHaveLength(5_000)
})

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
  // No caller sees it as registered.
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
