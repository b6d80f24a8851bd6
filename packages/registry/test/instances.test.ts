import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { AgentCard } from '../src/index.ts'
import { agentInstances, DISCOVERY_CHANNEL } from '../src/index.ts'
import { ADMIN, ALICE, BOB, card, openBench, watched } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

function instance(agentId: string, id: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return card(agentId, { instance_id: id, url: `http://127.0.0.1:9/${id}`, ...more })
}

function idsOf(found: AgentCard | undefined): readonly string[] {
  return found === undefined ? [] : agentInstances(found).map(({ instance_id }) => instance_id)
}

/** Rewrites the last entry of an agent as a node of an older version does for a heartbeat. */
async function beatOfOlderNode(system: BrokerHandle, agentId: string): Promise<void> {
  const last = await system.eventsStore.getLast(DISCOVERY_CHANNEL, agentId)
  if (last === undefined) throw new Error('no entry')
  const { revision = '', account = '', since = String(last.sequence) } = last.tags
  const tags = { revision, account, since, last_seen: String(Date.now()) }
  await system.eventsStore.publish(DISCOVERY_CHANNEL, { key: agentId, body: last.body, tags })
}

test('R12 - instances: an agent has the instances that registered, and leaves with the last one', async () => {
  const { call } = await openServer()
  const first = await call('POST /agents/register', instance('echo', 'a', { name: 'One', instances: 'mine' }))
  expect(first.body).toMatchObject({
    agent_id: 'echo',
    name: 'One',
    url: 'http://127.0.0.1:9/a',
    instance_id: 'a',
    instances: [{ instance_id: 'a', url: 'http://127.0.0.1:9/a' }],
  })
  await call('POST /agents/register', instance('echo', 'b', { name: 'Two' }))
  const { body } = await call('GET /agents/echo')
  // The card is that of the last registration; the agent is as old as its first.
  expect(body).toMatchObject({ name: 'Two', url: 'http://127.0.0.1:9/b', instance_id: 'b' })
  expect(body.registered_at).toBe(first.body.registered_at)
  expect(idsOf(body)).toEqual(['a', 'b'])
  expect((await call('GET /agents')).body).toEqual([body])
  expect((await call('POST /agents/deregister', { agent_id: 'echo', instance_id: 'b' })).body).toEqual({ ok: true })
  const left = (await call('GET /agents/echo')).body
  expect(left).toMatchObject({ name: 'Two', url: 'http://127.0.0.1:9/a', instance_id: 'a' })
  expect(idsOf(left)).toEqual(['a'])
  expect((await call('POST /agents/deregister', { agent_id: 'echo', instance_id: 'b' })).status).toBe(404)
  expect((await call('DELETE /agents/echo?instance_id=a')).status).toBe(200)
  expect((await call('GET /agents/echo')).status).toBe(404)
})

test('R12 - instances: a registration replaces the instance of its id, and that of its url', async () => {
  const { registry } = await openServer()
  const { registered_at: a } = agentInstances(await registry.register(instance('echo', 'a'), ALICE))[0] ?? {}
  await registry.register(instance('echo', 'b'), ALICE)
  const moved = await registry.register(instance('echo', 'a', { url: 'http://127.0.0.1:9/moved' }), ALICE)
  expect(agentInstances(moved).map(({ instance_id, url }) => [instance_id, url])).toEqual([
    ['b', 'http://127.0.0.1:9/b'],
    ['a', 'http://127.0.0.1:9/moved'],
  ])
  expect(agentInstances(moved)[1]?.registered_at).toBe(a)
  // A server that restarted with a new id has left its old one behind.
  const again = await registry.register(instance('echo', 'c', { url: 'http://127.0.0.1:9/b' }), ALICE)
  expect(idsOf(again)).toEqual(['a', 'c'])
  const plain = await registry.register(card('echo', { instances: [1] }), ALICE)
  // Without an instance_id it is a field of the agent's own.
  expect([plain['instance_id'], plain['instances']]).toEqual([undefined, [1]])
  expect(idsOf(await registry.register(instance('echo', 'd'), ALICE))).toEqual(['d'])
})

test('R12 - instances: a heartbeat is for one registration, and 400 for one that is not there', async () => {
  const { call, registry } = await openServer()
  await call('POST /agents/register', card('plain'))
  const { url } = card('plain')
  expect((await call('POST /agents/heartbeat', { agent_id: 'plain' })).status).toBe(200)
  expect((await call('POST /agents/heartbeat', { agent_id: 'plain', url })).status).toBe(200)
  const other = { agent_id: 'plain', url: 'http://127.0.0.1:9/other' }
  for (const body of [other, { agent_id: 'plain', instance_id: 'a' }]) {
    expect(await call('POST /agents/heartbeat', body)).toMatchObject({
      status: 400,
      body: { error: 'INSTANCE_NOT_FOUND' },
    })
    expect(await call('POST /agents/deregister', body)).toMatchObject({
      status: 404,
      body: { error: 'INSTANCE_NOT_FOUND' },
    })
  }
  expect((await call('GET /agents/plain')).status).toBe(200)
  expect((await call('POST /agents/deregister', { agent_id: 'plain', url })).status).toBe(200)
  expect((await call('GET /agents/plain')).status).toBe(404)

  await call('POST /agents/register', instance('echo', 'a'))
  await call('POST /agents/register', instance('echo', 'b'))
  const seen = (): readonly string[] => {
    const found = registry.get('echo')
    return found === undefined ? [] : agentInstances(found).map(({ last_seen }) => last_seen)
  }
  const [a = '', b = ''] = seen()
  await delay(5)
  expect((await call('POST /agents/heartbeat', { agent_id: 'echo', instance_id: 'a' })).status).toBe(200)
  expect([(seen()[0] ?? '') > a, seen()[1]]).toEqual([true, b])
  expect((await call('POST /agents/heartbeat', { agent_id: 'echo', url: 'http://127.0.0.1:9/b' })).status).toBe(200)
  expect((seen()[1] ?? '') > b).toBe(true)
  expect((await call('POST /agents/heartbeat', { agent_id: 'echo' })).status).toBe(200)
  for (const wrong of [{ instance_id: 7 }, { instance_id: 'a b' }, { url: 7 }]) {
    const answer = await call('POST /agents/heartbeat', { agent_id: 'echo', ...wrong })
    expect([answer.status, answer.body.error]).toEqual([400, 'BODY_INVALID'])
  }
  expect((await call('DELETE /agents/echo?instance_id=a%20b')).body).toMatchObject({ error: 'PARAMETER_INVALID' })
})

test('R12 - instances: the whole agent leaves when no registration is named, and only its owner may act', async () => {
  const { registry } = await openServer()
  await registry.register(instance('echo', 'a'), ALICE)
  await registry.register(instance('echo', 'b'), ALICE)
  const name = { instanceId: 'a' }
  for (const attempt of [
    registry.register(instance('echo', 'c'), BOB),
    registry.heartbeat('echo', BOB, name),
    registry.deregister('echo', BOB, name),
  ]) {
    await expect(attempt).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  }
  await registry.deregister('echo', ADMIN, name)
  expect(idsOf(registry.get('echo'))).toEqual(['b'])
  await registry.register(instance('echo', 'a'), ALICE)
  await registry.deregister('echo', ALICE)
  expect(registry.get('echo')).toBeUndefined()
})

test('R12 - instances: an agent has at most CONNECTORSA2_A_MAX_INSTANCES, and an invalid id is a problem of the card', async () => {
  const { call } = await openServer({}, { maxInstances: 2 })
  await call('POST /agents/register', instance('echo', 'a'))
  await call('POST /agents/register', instance('echo', 'b'))
  expect(await call('POST /agents/register', instance('echo', 'c'))).toMatchObject({
    status: 409,
    body: { error: 'INSTANCE_LIMIT', details: [{ limit: 'instances', most: 2 }] },
  })
  expect((await call('POST /agents/register', instance('echo', 'b'))).status).toBe(200)
  for (const id of ['', '-a', 'a b', 'x'.repeat(129), 7, null]) {
    const answer = await call('POST /agents/register', instance('echo', 'a', { instance_id: id }))
    expect([answer.status, answer.body.details[0].field]).toEqual([400, 'instance_id'])
  }
  await expect(openServer({}, { maxInstances: 0 })).rejects.toThrow('maxInstances')
})

test('R12, R5 - instances: a silent instance expires alone on every node, and the last one with its agent', async () => {
  const { node } = await openBench()
  const [first, second] = [watched(), watched()]
  const one = await node({ agentTtlSeconds: 2, hooks: first.hooks })
  const two = await node({ agentTtlSeconds: 2, hooks: second.hooks })
  const changes: string[] = []
  two.onChange(({ kind, card: changed }) => changes.push(`${kind} ${idsOf(changed).join('+')}`))
  for (const id of ['a', 'b', 'c', 'd']) await one.register(instance('echo', id), ALICE)
  await until(() => idsOf(two.get('echo')).length === 4)
  // The others are heard of by both nodes while c and d are silent.
  const all = () => [idsOf(one.get('echo')), idsOf(two.get('echo'))]
  while (all().some((ids) => ids.includes('c') || ids.includes('d'))) {
    await one.heartbeat('echo', ALICE, { instanceId: 'a' })
    await two.heartbeat('echo', ALICE, { instanceId: 'b' })
    await delay(30)
  }
  expect(all()).toEqual([
    ['a', 'b'],
    ['a', 'b'],
  ])
  expect(one.get('echo')?.url).toBe('http://127.0.0.1:9/b')
  await expect(one.heartbeat('echo', ALICE, { instanceId: 'c' })).rejects.toMatchObject({ code: 'INSTANCE_NOT_FOUND' })
  await until(() => one.size === 0 && two.size === 0)
  const expiries = () => [...first.operations, ...second.operations].filter((line) => line.startsWith('expire'))
  await until(() => expiries().length >= 4)
  expect(expiries()).toEqual(Array.from({ length: 4 }, () => 'expire success echo'))
  expect([...first.failures, ...second.failures]).toEqual([])
  expect([changes[0], changes.at(-1)]).toEqual(['registered a', 'removed '])
})

test('R12 - instances: nodes that register and deregister at the same time agree, and nothing is lost', async () => {
  const { node, restart } = await openBench()
  const [first, second] = [await node(), await node()]
  const nodes = [first, second]
  const ids = Array.from({ length: 24 }, (_, index) => `i${index}`)
  const at = (index: number) => (index % 3 === 0 ? first : second)
  await Promise.all(ids.map((id, index) => at(index).register(instance('echo', id), ALICE)))
  const leaving = [...ids.entries()].filter(([index]) => index % 2 === 0)
  await Promise.all(leaving.map(([index, id]) => at(index + 1).deregister('echo', ALICE, { instanceId: id })))
  const left = ids.filter((_, index) => index % 2 === 1)
  for (const one of nodes) await until(() => idsOf(one.get('echo')).toSorted().join() === left.toSorted().join())
  expect(new Set(nodes.map((one) => JSON.stringify(one.get('echo'))))).toHaveLength(1)
  const before = first.get('echo')
  await restart()
  expect((await node()).get('echo')).toEqual(before)
})

test('R12 - instances: a node of an older version keeps the instances in the heartbeats that it writes', async () => {
  const { node, system } = await openBench()
  const one = await node({ agentTtlSeconds: 60 })
  await one.register(instance('echo', 'a'), ALICE)
  const { last_seen: before } = await one.register(instance('echo', 'b'), ALICE)
  await delay(5)
  await beatOfOlderNode(system, 'echo')
  await until(() => (one.get('echo')?.last_seen ?? '') > before)
  expect(idsOf(one.get('echo'))).toEqual(['a', 'b'])
  expect(idsOf((await node()).get('echo'))).toEqual(['a', 'b'])
  // It registers an agent with an instance_id as with any other field.
  const last = await system.eventsStore.getLast(DISCOVERY_CHANNEL, 'echo')
  const body = new TextEncoder().encode(
    JSON.stringify({
      ...instance('echo', 'c'),
      protocolVersions: ['1.0'],
      registered_by: 'alice',
      registered_at: '2026-01-01T00:00:00.000Z',
    }),
  )
  const { account = '', since = '', last_seen = '' } = last?.tags ?? {}
  const tags = { account, since, last_seen, revision: 'older' }
  await system.eventsStore.publish(DISCOVERY_CHANNEL, { key: 'echo', body, tags })
  await until(() => idsOf(one.get('echo')).join() === 'c')
  await one.heartbeat('echo', ALICE, { instanceId: 'c' })
})

test('R11, R12 - instances: their memory counts for the owner of the agent', async () => {
  const { node } = await openBench()
  const registry = await node({ maxCardMemoryBytes: 40_000 })
  const attempts = Array.from({ length: 20 }, (_, index) => {
    const url = `http://127.0.0.1:9/${index}${'x'.repeat(1_500)}`
    return registry.register(instance('echo', `i${index}`, { url }), ALICE)
  })
  const refused = (await Promise.allSettled(attempts)).filter(({ status }) => status === 'rejected')
  expect(refused.length).toBeGreaterThan(5)
  expect(refused[0]).toMatchObject({ reason: { code: 'CALLER_AGENT_LIMIT' } })
})
