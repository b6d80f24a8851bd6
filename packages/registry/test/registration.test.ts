import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AgentRegistry, RegistryCaller } from '../src/index.ts'
import { ADMIN, ALICE, BOB, card, openBench, watched } from './registry-bench.ts'

const OWNED = { code: 'AGENT_OWNED', status: 403 }
const NOT_FOUND = { code: 'AGENT_NOT_FOUND', status: 404 }
const ISO_MS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('STATE-1, AGENT-10, AGENT-11, AGENT-12, R2 - registration: an agent is listed at once, with the fields that the server sets', async () => {
  const { node } = await openBench()
  const registry = await node()
  const before = Date.now()
  const given = card('a1', { 'x-own': [1], registered_by: 'somebody', registered_at: 'x', last_seen: 7 })
  const registered = await registry.register(given, ALICE)
  expect(registered).toEqual({
    ...card('a1', { 'x-own': [1] }),
    protocolVersions: ['1.0'],
    registered_by: 'alice',
    registered_at: expect.stringMatching(ISO_MS),
    last_seen: registered.registered_at,
  })
  expect(Date.parse(registered.registered_at)).toBeGreaterThanOrEqual(before)
  expect(Date.parse(registered.registered_at)).toBeLessThanOrEqual(Date.now())
  expect(registry.get('a1')).toEqual(registered)
  expect(await registry.find('a1')).toEqual(registered)
  expect(registry.list()).toEqual([registered])
  expect(registry.size).toBe(1)
})

test('STATE-2, AGENT-12 - registration: again by its owner it is updated, and keeps its registered_at', async () => {
  const { node } = await openBench()
  const registry = await node()
  const first = await registry.register(card('a1', { skills: [{ id: 's', name: 'S', tags: ['old'] }] }), ALICE)
  await new Promise((resolve) => setTimeout(resolve, 5))
  const second = await registry.register(
    card('a1', { name: 'Other', skills: [{ id: 's', name: 'S', tags: ['new'] }] }),
    ALICE,
  )
  expect(second).toMatchObject({ name: 'Other', registered_at: first.registered_at, registered_by: 'alice' })
  expect(second.last_seen > first.last_seen).toBe(true)
  expect(registry.list({ skillTags: ['old'] })).toEqual([])
  expect(registry.list({ skillTags: ['new'] })).toEqual([second])
  expect(registry.size).toBe(1)
})

test('R4 - registration: an agent is its owner’s; an Admin may act on it and does not become the owner', async () => {
  const { node } = await openBench()
  const registry = await node()
  await registry.register(card('a1'), ALICE)
  const before = registry.get('a1')
  for (const call of [
    () => registry.register(card('a1', { name: 'Mine now' }), BOB),
    () => registry.heartbeat('a1', BOB),
    () => registry.deregister('a1', BOB),
    () => registry.deregister('a1', { clientId: 'bob', admin: false }),
  ]) {
    await expect(call()).rejects.toMatchObject(OWNED)
  }
  expect(registry.get('a1')).toEqual(before)
  expect(await registry.register(card('a1', { name: 'Mended' }), ADMIN)).toMatchObject({
    name: 'Mended',
    registered_by: 'alice',
    registered_at: before?.registered_at,
  })
  await registry.heartbeat('a1', ADMIN)
  await registry.register(card('a1'), ALICE)
  await registry.deregister('a1', ADMIN)
  expect(registry.get('a1')).toBeUndefined()
})

test('STATE-4, R4 - registration: after deregistering any caller may register the id, with a new registered_at', async () => {
  const { node } = await openBench()
  const registry = await node()
  const first = await registry.register(card('a1'), ALICE)
  await registry.deregister('a1', ALICE)
  expect([registry.get('a1'), await registry.find('a1'), registry.list(), registry.size]).toEqual([
    undefined,
    undefined,
    [],
    0,
  ])
  await expect(registry.deregister('a1', ALICE)).rejects.toMatchObject(NOT_FOUND)
  await new Promise((resolve) => setTimeout(resolve, 5))
  const second = await registry.register(card('a1'), BOB)
  expect(second.registered_by).toBe('bob')
  expect(second.registered_at > first.registered_at).toBe(true)
})

test('R4 - registration: unknown agents and ids of the wrong form are not found', async () => {
  const { node } = await openBench()
  const registry = await node()
  for (const id of ['a1', '', 'A', 'x'.repeat(5_000), '../a', '__proto__']) {
    await expect(registry.heartbeat(id, ALICE)).rejects.toMatchObject(NOT_FOUND)
    await expect(registry.deregister(id, ALICE)).rejects.toMatchObject(NOT_FOUND)
    expect([registry.get(id), await registry.find(id)]).toEqual([undefined, undefined])
  }
})

test('R4 - registration: of principals that race for an id exactly one wins, on one node and on two', async () => {
  const { node } = await openBench()
  const nodes = [await node(), await node()] as const
  for (let round = 0; round < 5; round++) {
    const id = `race-${round}`
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => nodes[i % 2 === 0 ? 0 : 1].register(card(id, { i }), { clientId: `c${i}` })),
    )
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    expect(won).toHaveLength(1)
    for (const lost of outcomes.filter((outcome) => outcome.status === 'rejected'))
      expect(lost.reason).toMatchObject(OWNED)
    expect((await nodes[0].find(id))?.registered_by).toBe(won[0]?.value.registered_by)
  }
})

test('STATE-2 - registration: a principal that races itself succeeds each time', async () => {
  const { node } = await openBench()
  const nodes = [await node(), await node()] as const
  const cards = await Promise.all(
    Array.from({ length: 30 }, (_, i) => nodes[i % 2 === 0 ? 0 : 1].register(card('a1', { i }), ALICE)),
  )
  expect(new Set(cards.map(({ registered_at }) => registered_at)).size).toBe(1)
  const removals = await Promise.allSettled(nodes.map((registry) => registry.deregister('a1', ALICE)))
  expect(removals.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
})

test('REG-7 - registration: every call is counted once, by how it ended', async () => {
  const { node } = await openBench()
  const { operations, hooks } = watched()
  const registry = await node({ hooks, maxAgents: 1 })
  const calls = [
    registry.register(card('a1'), ALICE),
    registry.register({ agent_id: 'a1' }, ALICE),
    registry.register(7, ALICE),
  ]
  await Promise.allSettled(calls)
  await registry.heartbeat('a1', ALICE)
  for (const failing of [
    () => registry.register(card('a2'), ALICE),
    () => registry.heartbeat('a1', BOB),
    () => registry.heartbeat('NO', BOB),
    () => registry.deregister('a9', BOB),
  ]) {
    await expect(failing()).rejects.toHaveProperty('code')
  }
  await registry.deregister('a1', ALICE)
  expect(operations.sort()).toEqual([
    'deregister error a9 AGENT_NOT_FOUND',
    'deregister success a1',
    'heartbeat error AGENT_NOT_FOUND',
    'heartbeat error a1 AGENT_OWNED',
    'heartbeat success a1',
    'register error CARD_INVALID',
    'register error a1 CARD_INVALID',
    'register error a2 AGENT_LIMIT',
    'register success a1',
  ])
})

test('registration - hooks and listeners that throw affect no caller', async () => {
  const { node } = await openBench()
  const thrown: unknown[] = []
  const registry = await node({
    hooks: {
      operation: () => {
        throw new Error('hook')
      },
      failed: (error) => {
        thrown.push(error)
        throw new Error('hook')
      },
    },
  })
  const seen: string[] = []
  registry.onChange(() => {
    throw new Error('listener')
  })
  registry.onChange(({ kind }) => seen.push(kind))
  await registry.register(card('a1'), ALICE)
  expect(seen).toEqual(['registered'])
  expect(thrown).toMatchObject([{ message: 'listener' }])
})

test('registration - a closed registry refuses, and closing twice is closing once', async () => {
  const { node } = await openBench()
  const registry = await node()
  await registry.register(card('a1'), ALICE)
  await Promise.all([registry.close(), registry.close()])
  await registry[Symbol.asyncDispose]()
  await expect(registry.register(card('a2'), ALICE)).rejects.toMatchObject({ code: 'SHUTTING_DOWN', status: 503 })
  await expect(registry.heartbeat('a1', ALICE)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
})

const run = async (
  registry: AgentRegistry,
  op: 'register' | 'heartbeat' | 'deregister',
  id: string,
  caller: RegistryCaller,
) => {
  try {
    if (op === 'register') return (await registry.register(card(id), caller)).registered_by
    await registry[op](id, caller)
    return 'done'
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
}

test('R4, AGENT-10, AGENT-12 - registration: any sequence of calls ends as a simple model says', async () => {
  const { node } = await openBench()
  const nodes = [await node(), await node()] as const
  const callers = [ALICE, BOB, ADMIN]
  const call = fc.record({
    op: fc.constantFrom('register' as const, 'register' as const, 'heartbeat' as const, 'deregister' as const),
    id: fc.constantFrom('m1', 'm2', 'm3'),
    caller: fc.constantFrom(...callers),
    at: fc.constantFrom(0 as const, 1 as const),
  })
  const owners = new Map<string, { owner: string; registeredAt: string | undefined }>()
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: 15 }), async (calls) => {
      for (const { op, id, caller, at } of calls) {
        const registry = nodes[at]
        // The model is one; a node that has not heard of a call yet is asked as soon as it has.
        while (nodes.some((each) => each.get(id)?.registered_by !== owners.get(id)?.owner))
          await new Promise(setImmediate)
        const before = owners.get(id)
        const outcome = await run(registry, op, id, caller)
        const allowed = before === undefined ? op === 'register' : before.owner === caller.clientId || caller === ADMIN
        const owner = before?.owner ?? caller.clientId
        const refusal = before === undefined ? 'AGENT_NOT_FOUND' : 'AGENT_OWNED'
        expect(outcome).toBe(allowed ? (op === 'register' ? owner : 'done') : refusal)
        const shown = registry.get(id)
        if (allowed && op === 'register')
          owners.set(id, { owner, registeredAt: before?.registeredAt ?? shown?.registered_at })
        if (allowed && op === 'deregister') owners.delete(id)
        expect([shown?.registered_by, shown?.registered_at]).toEqual([
          owners.get(id)?.owner,
          owners.get(id)?.registeredAt,
        ])
      }
    }),
    { seed: 7, numRuns: 40 },
  )
})
