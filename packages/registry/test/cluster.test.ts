import { encodeText } from '@signalbox/broker-core'
import type { StoredEventInput } from '@signalbox/broker-core'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { DISCOVERY_CHANNEL } from '../src/index.ts'
import { Faults } from './faults.ts'
import { ALICE, BOB, card, openBench, watched } from './registry-bench.ts'

test('STATE-1, STATE-4 - cluster: every node sees the changes of the others', async () => {
  const { node } = await openBench()
  const [one, two] = [await node(), await node()]
  const skills = [{ id: 's', name: 'S', tags: ['math'] }]
  const registered = await one.register(card('a1', { skills }), ALICE)
  await until(() => two.size === 1)
  expect(two.get('a1')).toEqual(registered)
  expect(two.list({ skillTags: ['math'] })).toEqual([registered])
  await expect(two.register(card('a1'), BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await two.deregister('a1', ALICE)
  await until(() => one.size === 0)
  expect(one.list({ skillTags: ['math'] })).toEqual([])
})

test('R9 - cluster: a node that has not heard of an agent asks the engine before it says no', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const [one, late] = [await node(), await node({}, faults)]
  faults.hold()
  const registered = await one.register(card('a1'), ALICE)
  expect(late.get('a1')).toBeUndefined()
  expect(await late.find('a1')).toEqual(registered)
  await expect(late.register(card('a1'), BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await expect(late.heartbeat('a1', BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await late.heartbeat('a1', ALICE)
  await one.deregister('a1', ALICE)
  expect(await late.find('a1')).toBeUndefined()
  await expect(late.heartbeat('a1', ALICE)).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  faults.release()
})

test('R4, R9 - cluster: a node that has not heard of a new owner asks before it refuses', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const [one, late] = [await node(), await node({}, faults)]
  await one.register(card('a1'), ALICE)
  await until(() => late.size === 1)
  faults.hold()
  await one.deregister('a1', ALICE)
  await one.register(card('a1'), BOB)
  expect(late.get('a1')?.registered_by).toBe('alice')
  await late.heartbeat('a1', BOB)
  await expect(late.register(card('a1'), ALICE)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  const mended = late.register(card('a1', { name: 'Mended' }), BOB)
  await until(() => one.get('a1')?.name === 'Mended')
  faults.release()
  expect(await mended).toEqual(late.get('a1'))
})

test('cluster - listeners get every change in order, and the existing agents on request; a heartbeat is no change', async () => {
  const { node } = await openBench()
  const [one, two] = [await node(), await node()]
  const told: string[][] = [[], [], []]
  const listen = (at: number) => (change: { kind: string; agentId: string; card?: unknown }) =>
    told[at]?.push(`${change.kind} ${change.agentId} ${change.card === undefined ? '-' : 'card'}`)
  const stop = [one.onChange(listen(0)), two.onChange(listen(1))]
  await one.register(card('a2'), ALICE)
  await one.register(card('a1'), ALICE)
  await one.register(card('a2', { name: 'Other' }), ALICE)
  await one.heartbeat('a2', ALICE)
  await one.deregister('a2', ALICE)
  await until(() => two.size === 1 && two.get('a2') === undefined)
  const all = ['registered a2 card', 'registered a1 card', 'updated a2 card', 'removed a2 -']
  expect(told).toEqual([all, all, []])
  two.onChange(listen(2), { replay: true })
  expect(told[2]).toEqual(['registered a1 card'])
  for (const each of stop) each()
  await one.deregister('a1', ALICE)
  await until(() => two.size === 0)
  expect(told).toEqual([all, all, ['registered a1 card', 'removed a1 -']])
})

test('R2 - cluster: a restart of everything keeps cards, owners and registered_at', async () => {
  const { node, restart } = await openBench()
  const first = await node()
  await first.register(card('a1', { 'x-own': { deep: [1, '🙂'] } }), ALICE)
  await first.register(card('a2'), BOB)
  await first.register(card('a1', { 'x-own': { deep: [2] } }), ALICE)
  await first.deregister('a2', BOB)
  const before = first.list()
  await restart()
  const second = await node()
  expect(second.list()).toEqual(before)
  await expect(second.register(card('a1'), BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  expect(await second.register(card('a2'), ALICE)).toMatchObject({ registered_by: 'alice' })
})

const body = (text: string) => encodeText(text)

test('cluster - entries that cannot be read are left out and reported, before the start and after', async () => {
  const { node, system } = await openBench()
  const good = await node()
  const kept = await good.register(card('good'), ALICE)
  const tags = { revision: 'r', last_seen: '1' }
  const poison: readonly StoredEventInput[] = [
    { key: 'p1', body: body('{'), tags },
    { key: 'p2', body: new Uint8Array([0xff, 0xfe]), tags },
    { key: 'p3', body: body('[]'), tags },
    { key: 'p4', body: body(JSON.stringify(kept)), tags },
    { key: 'p5', body: body(JSON.stringify({ ...kept, agent_id: 'p5', skills: 7 })), tags },
    { key: 'good', body: body(JSON.stringify(kept)), tags: { revision: 'r' } },
    { key: 'p7', body: body(JSON.stringify({ ...kept, agent_id: 'p7' })), tags: { ...tags, last_seen: '9e15' } },
    { key: 'p8', body: body(JSON.stringify({ ...kept, agent_id: 'p8' })), tags: { last_seen: '1' } },
    { body: body('no key'), tags },
  ]
  await good.register(card('other'), ALICE)
  for (const entry of poison) await system.eventsStore.publish(DISCOVERY_CHANNEL, entry)
  await good.register(card('after'), ALICE)
  const { failures, hooks } = watched()
  const late = await node({ hooks })
  // The last entry of the key `good` cannot be read: no node shows what was there before.
  for (const registry of [good, late]) expect(registry.list().map((each) => each.agent_id)).toEqual(['after', 'other'])
  expect(failures).toHaveLength(poison.length)
  for (const failure of failures) expect(failure).toMatch(/^entry \d+ of _AGENTS_\.discovery was left out: it/)
  expect(await late.find('p1')).toBeUndefined()
  expect(await late.register(card('p1'), BOB)).toMatchObject({ registered_by: 'bob' })
  await system.eventsStore.publish(DISCOVERY_CHANNEL, { key: 'other', body: body('null'), tags })
  await until(() => late.get('other') === undefined)
})

test('cluster - a subscription that the engine ends is made again, and missed changes are applied', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const { failures, hooks } = watched()
  const [one, broken] = [await node(), await node({ hooks }, faults)]
  await one.register(card('stays'), ALICE)
  await one.register(card('goes'), ALICE)
  await until(() => broken.size === 2)
  const told: string[] = []
  broken.onChange(({ kind, agentId }) => told.push(`${kind} ${agentId}`))
  expect(broken.current).toBe(true)
  faults.endSubscriptions()
  await until(() => !broken.current)
  await until(() => failures.length === 1)
  await one.deregister('goes', ALICE)
  await one.register(card('comes'), ALICE)
  await one.register(card('stays', { name: 'Other' }), ALICE)
  await until(() => broken.get('stays')?.name === 'Other')
  expect(broken.list()).toEqual(one.list())
  expect(told.sort()).toEqual(['registered comes', 'removed goes', 'updated stays'])
  await one.register(card('later'), ALICE)
  await until(() => broken.get('later') !== undefined)
  expect(broken.current).toBe(true)
  expect(failures).toEqual(['the connection is gone'])
})

test('CL-8 - a registry that opens while the engine does not answer reports it, waits, and then knows every agent', async () => {
  const { node } = await openBench()
  const registered = await (await node()).register(card('a1'), ALICE)
  const faults = new Faults()
  const { failures, hooks } = watched()
  faults.failReads(2)
  const late = await node({ hooks, waitForEngine: true }, faults)
  expect(late.list()).toEqual([registered])
  expect(late.current).toBe(true)
  expect(failures).toEqual(['the store does not answer', 'the store does not answer'])
})

test('cluster - without waiting, a registry does not open while the engine does not answer', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  faults.failReads(1)
  await expect(node({}, faults)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
})

test('cluster - while the store is away writes fail, and nothing changes', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const { operations, hooks } = watched()
  const registry = await node({ hooks }, faults)
  await registry.register(card('a1'), ALICE)
  const before = registry.list()
  faults.away()
  for (const call of [
    () => registry.register(card('a1', { name: 'Other' }), ALICE),
    () => registry.register(card('a2'), ALICE),
    () => registry.deregister('a1', ALICE),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  }
  expect(registry.list()).toEqual(before)
  faults.back()
  await registry.register(card('a2'), ALICE)
  expect(operations).toEqual([
    'register success a1',
    'register error a1 ENGINE_UNAVAILABLE',
    'register error a2 ENGINE_UNAVAILABLE',
    'deregister error a1 ENGINE_UNAVAILABLE',
    'register success a2',
  ])
})

test('R7, REG-8 - MaxAgents: the limit is exact for concurrent registrations; a registered agent may register again', async () => {
  const { node, restart } = await openBench()
  const registry = await node({ maxAgents: 5 })
  const outcomes = await Promise.allSettled(
    Array.from({ length: 30 }, (_, i) => registry.register(card(`a${i % 15}`), ALICE)),
  )
  const refusals = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(registry.size).toBe(5)
  expect(refusals).toHaveLength(20)
  for (const { reason } of refusals)
    expect(reason).toMatchObject({ code: 'AGENT_LIMIT', status: 409, details: [{ limit: 5 }] })
  await registry.register(card('a0', { name: 'Other' }), ALICE)
  await registry.deregister('a0', ALICE)
  await registry.register(card('new'), ALICE)
  await expect(registry.register(card('one-more'), ALICE)).rejects.toMatchObject({ code: 'AGENT_LIMIT' })
  await restart()
  const lowered = await node({ maxAgents: 2 })
  await expect(lowered.register(card('one-more'), ALICE)).rejects.toMatchObject({ code: 'AGENT_LIMIT' })
  expect(lowered.size).toBe(5)
  await lowered.close()
  const unlimited = await node({ maxAgents: 0 })
  await unlimited.deregister('new', ALICE)
  for (let i = 0; i < 10; i++) await unlimited.register(card(`more-${i}`), ALICE)
  expect(unlimited.size).toBe(14)
})

test('R7 - MaxAgents: of two registrations that exceed it on two nodes, the later one is removed with an error', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const [one, late] = [await node({ maxAgents: 2 }), await node({ maxAgents: 2 }, faults)]
  await one.register(card('a1'), ALICE)
  await until(() => late.size === 1)
  faults.hold()
  await one.register(card('in-time'), ALICE)
  const tooLate = late.register(card('a-too-late'), BOB)
  // The first node sees both, and takes the later one back.
  await until(async () => (await one.find('a-too-late')) === undefined && one.size === 2)
  faults.release()
  await expect(tooLate).rejects.toMatchObject({ code: 'AGENT_LIMIT' })
  await until(() => late.size === 2)
  for (const registry of [one, late]) expect(registry.list().map((each) => each.agent_id)).toEqual(['a1', 'in-time'])
})
