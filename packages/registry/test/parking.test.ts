import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { testServer } from '@signalbox/testkit/test-server'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { ParkedAgents } from '../src/directory/parked-agents.ts'
import { agentInstances, DISCOVERY_CHANNEL } from '../src/index.ts'
import { Faults } from './faults.ts'
import { ADMIN, ALICE, BOB, card, openBench, pullCard, watched } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

const QUEUE = { a2a: { offline: 'queue' } }

test('pull agents - a card without url is registered, and no answer shows an address', async () => {
  const { call, registry } = await openServer()
  const registered = await call('POST /agents/register', pullCard('puller'))
  expect(registered.status).toBe(200)
  expect(registered.body).toMatchObject({ agent_id: 'puller', a2a: { pull: true } })
  expect((await call('POST /agents/register', card('pushed', QUEUE))).body).toHaveProperty('url')
  const answers = [
    registered.text,
    (await call('GET /agents')).text,
    (await call('GET /agents/puller')).text,
    // A card that its owner read can be registered again.
    (await call('POST /agents/register', registered.body)).text,
    JSON.stringify([registry.list(), registry.get('puller'), await registry.find('puller')]),
  ]
  for (const text of answers) expect(text).not.toContain('inbox.invalid')
  expect(registry.get('puller')).not.toHaveProperty('url')
  expect(await call('POST /agents/register', pullCard('puller', { url: 'http://127.0.0.1:9/' }))).toMatchObject({
    status: 400,
    body: { error: 'CARD_INVALID', details: [{ field: 'url' }] },
  })
})

test('pull agents - nodes of older versions find a url in the stored card, and listeners find none', async () => {
  const { node, system } = await openBench()
  const registry = await node()
  const urls: unknown[] = []
  registry.onChange(({ card: changed }) => urls.push(changed?.url))
  await registry.register(pullCard('puller'), ALICE)
  const stored = await system.eventsStore.getLast(DISCOVERY_CHANNEL, 'puller')
  expect(JSON.parse(new TextDecoder().decode(stored?.body))).toMatchObject({ url: 'http://inbox.invalid/' })
  const other = await node()
  other.onChange(({ card: changed }) => urls.push(changed?.url), { replay: true })
  expect(urls).toEqual([undefined, undefined])
})

test('parking - an agent with an inbox stays registered as offline on every node, and is counted once', async () => {
  const { node } = await openBench()
  const [first, second] = [watched(), watched()]
  const one = await node({ agentTtlSeconds: 0.5, hooks: first.hooks })
  const two = await node({ agentTtlSeconds: 0.5, hooks: second.hooks })
  const changes: string[] = []
  two.onChange(({ kind, agentId, card: changed }) => changes.push(`${kind} ${agentId} ${changed?.offline}`))
  await one.register(pullCard('puller'), ALICE)
  await one.register(card('pushed', QUEUE), ALICE)
  await one.register(card('durable', { a2a: { durable: true } }), ALICE)
  for (const id of ['puller', 'pushed']) {
    await until(() => one.get(id)?.offline === true && two.get(id)?.offline === true)
  }
  await until(() => one.size === 2 && two.size === 2)
  expect(one.list().map(({ agent_id, offline }) => [agent_id, offline])).toEqual([
    ['puller', true],
    ['pushed', true],
  ])
  expect(await two.find('puller')).toMatchObject({ offline: true })
  expect(changes.toSorted()).toEqual([
    'registered durable undefined',
    'registered puller undefined',
    'registered pushed undefined',
    'removed durable undefined',
    'updated puller true',
    'updated pushed true',
  ])
  // They stay: the clocks of parked agents do not run.
  await delay(1_200)
  expect([one.size, two.size]).toEqual([2, 2])
  const operations = [...first.operations, ...second.operations].filter((line) => !line.startsWith('register'))
  expect(operations.toSorted()).toEqual(['expire success durable', 'park success puller', 'park success pushed'])
  expect([...first.failures, ...second.failures]).toEqual([])
})

test('parking - a heartbeat or a registration ends it on every node, and the agent can be parked again', async () => {
  const { node } = await openBench()
  const one = await node({ agentTtlSeconds: 1 })
  const two = await node({ agentTtlSeconds: 1 })
  const changes: string[] = []
  two.onChange(({ kind, card: changed }) => changes.push(`${kind} ${changed?.offline}`))
  await one.register(pullCard('puller'), ALICE)
  await until(() => two.get('puller')?.offline === true && one.get('puller')?.offline === true)
  await expect(two.heartbeat('puller', BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  expect(two.get('puller')).toHaveProperty('offline', true)
  await two.heartbeat('puller', ALICE)
  expect(two.get('puller')).not.toHaveProperty('offline')
  await until(() => one.get('puller')?.offline === undefined)
  await until(() => one.get('puller')?.offline === true && two.get('puller')?.offline === true)
  expect(await one.register(pullCard('puller', { offline: true }), ALICE)).not.toHaveProperty('offline')
  await until(() => two.get('puller')?.offline === undefined)
  expect(changes.slice(0, 4)).toEqual(['registered undefined', 'updated true', 'updated undefined', 'updated true'])
})

test('parking - an agent is removed after its time, and its id is held for its owner', async () => {
  const { node } = await openBench()
  const { operations, hooks } = watched()
  const one = await node({ agentTtlSeconds: 0.2, parkSeconds: 0.6, hooks })
  const two = await node({ agentTtlSeconds: 0.2, parkSeconds: 0.6, hooks })
  await one.register(pullCard('puller'), ALICE)
  await until(() => one.get('puller')?.offline === true)
  const parked = performance.now()
  await until(() => one.size === 0 && two.size === 0)
  expect(performance.now() - parked).toBeGreaterThan(400)
  await until(() => operations.length === 3)
  expect(operations).toEqual(['register success puller', 'park success puller', 'expire success puller'])
  await expect(one.register(pullCard('puller'), BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
  await one.register(pullCard('puller'), ALICE)
})

test('parking - a restart keeps an agent parked, and does not extend its time', async () => {
  const { node, restart } = await openBench()
  const first = await node({ agentTtlSeconds: 0.2 })
  await first.register(pullCard('puller'), ALICE)
  await until(() => first.get('puller')?.offline === true)
  await restart()
  const second = await node({ agentTtlSeconds: 0.2 })
  expect(second.get('puller')).toMatchObject({ offline: true })
  await delay(600)
  expect(second.get('puller')).toMatchObject({ offline: true })
  await restart()
  const third = await node({ agentTtlSeconds: 60, parkSeconds: 0.5 })
  await until(() => third.size === 0)
})

test('parking - without time for it, or without a log, an expired agent is removed at once', async () => {
  const { node } = await openBench()
  const { operations, hooks } = watched()
  const one = await node({ agentTtlSeconds: 0.2, parkSeconds: 0, hooks })
  await one.register(pullCard('puller'), ALICE)
  await until(() => one.size === 0)
  expect(operations).toContain('expire success puller')
  await one.close()
  const earlier = await node()
  await earlier.register(pullCard('puller'), ALICE)
  const off = await node({ agentTtlSeconds: 0.2, log: 'off' })
  await until(() => off.size === 0)
  for (const parkSeconds of [-1, Number.NaN]) await expect(node({ parkSeconds })).rejects.toThrow('parkSeconds')
})

function instance(id: string): Record<string, unknown> {
  return card('echo', { ...QUEUE, instance_id: id, url: `http://127.0.0.1:9/${id}` })
}

test('parking - an agent with instances is parked with its last ones', async () => {
  const { node } = await openBench()
  const registry = await node({ agentTtlSeconds: 0.5 })
  const ids = () => agentInstances(registry.get('echo') ?? {}).map(({ instance_id }) => instance_id)
  await registry.register(instance('a'), ALICE)
  await registry.register(instance('b'), ALICE)
  await until(() => registry.get('echo')?.offline === true)
  const last = ids()
  expect(last).toContain('b')
  await registry.heartbeat('echo', ALICE, { instanceId: 'b' })
  expect(registry.get('echo')).not.toHaveProperty('offline')
  expect(ids()).toEqual(last)
  await until(() => registry.get('echo')?.offline === true)
  // The instances of a parked agent have expired.
  await registry.register(instance('c'), ALICE)
  expect(ids()).toEqual(['c'])
  await until(() => registry.get('echo')?.offline === true)
  await registry.deregister('echo', ALICE, { instanceId: 'c' })
  expect(registry.get('echo')).toBeUndefined()
})

test('parking - the owner and an Admin can deregister a parked agent', async () => {
  const { node } = await openBench()
  const registry = await node({ agentTtlSeconds: 0.2 })
  for (const caller of [ALICE, ADMIN]) {
    await registry.register(pullCard('puller'), ALICE)
    await until(() => registry.get('puller')?.offline === true)
    await expect(registry.deregister('puller', BOB)).rejects.toMatchObject({ code: 'AGENT_OWNED' })
    await registry.deregister('puller', caller)
    expect(registry.get('puller')).toBeUndefined()
  }
})

test('parking - one that fails while the store is unavailable is counted, and retried', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const { operations, hooks } = watched()
  const registry = await node({ agentTtlSeconds: 0.4, hooks }, faults)
  await registry.register(pullCard('puller'), ALICE)
  faults.away()
  await until(() => operations.includes('park error puller ENGINE_UNAVAILABLE'))
  faults.back()
  await until(() => registry.get('puller')?.offline === true)
  expect(operations).toContain('park success puller')
})

/** Rewrites the last entry of an agent as a node of an older version does for a heartbeat. */
async function beatOfOlderNode(system: BrokerHandle, agentId: string): Promise<void> {
  const last = await system.eventsStore.getLast(DISCOVERY_CHANNEL, agentId)
  if (last === undefined) throw new Error('no entry')
  const { revision = '', account = '', since = '' } = last.tags
  const tags = { revision, account, since, last_seen: String(Date.now()) }
  await system.eventsStore.publish(DISCOVERY_CHANNEL, { key: agentId, body: last.body, tags })
}

test('parking - an agent whose card is read is parked while the card cannot be read', async () => {
  let status = 200
  const served = { name: 'Served', url: 'http://127.0.0.1:9/agent', protocolVersion: '0.3.0' }
  const server = await testServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(served))
  })
  const { node } = await openBench()
  const registry = await node({ agentTtlSeconds: 1.2 })
  await registry.register({ agent_card_url: `${server.url}/card`, a2a: { offline: 'queue' } }, ALICE)
  await delay(1_800)
  expect(registry.get('served')).not.toHaveProperty('offline')
  status = 500
  await until(() => registry.get('served')?.offline === true)
  status = 200
  await until(() => registry.get('served')?.offline === undefined)
  expect(registry.size).toBe(1)
})

test('parking - a heartbeat on a node of an older version ends it too', async () => {
  const { node, system } = await openBench()
  const registry = await node({ agentTtlSeconds: 0.5 })
  const changes: unknown[] = []
  await registry.register(pullCard('puller'), ALICE)
  await until(() => registry.get('puller')?.offline === true)
  registry.onChange(({ kind, card: changed }) => changes.push([kind, changed?.offline]))
  await beatOfOlderNode(system, 'puller')
  await until(() => changes.length === 1)
  expect(changes).toEqual([['updated', undefined]])
  await until(() => registry.get('puller')?.offline === true)
})

test('parked agents - each is reported at its end, and not after it was deleted', async () => {
  const reported: string[] = []
  const parked = new ParkedAgents((agentIds) => reported.push(...agentIds))
  const now = Date.now()
  parked.set('later', now + 300)
  parked.set('sooner', now + 100)
  parked.set('past', now - 1)
  parked.set('gone', now + 100)
  parked.delete('gone')
  parked.set('never', now + 60_000)
  await until(() => reported.includes('later'))
  expect(reported).toEqual(['past', 'sooner', 'later'])
  parked.close()
})

test('parking - an agent stays parked although its last heartbeat was not replicated', async () => {
  const { node } = await openBench()
  const faults = new Faults()
  const registry = await node({ agentTtlSeconds: 0.8 }, faults)
  await registry.register(pullCard('puller'), ALICE)
  await delay(250)
  faults.away()
  await expect(registry.heartbeat('puller', ALICE)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  faults.back()
  await until(() => registry.get('puller')?.offline === true)
  await delay(500)
  expect(registry.get('puller')).toHaveProperty('offline', true)
})

test('parking - a heartbeat that the parking node did not know of ends it', async () => {
  const { node } = await openBench()
  const one = await node({ agentTtlSeconds: 3 })
  await node({ agentTtlSeconds: 0.3 })
  const changes: unknown[] = []
  one.onChange(({ kind, card: changed }) => changes.push([kind, changed?.offline]))
  await one.register(pullCard('puller'), ALICE)
  await delay(20)
  // Too soon to be replicated at once.
  await one.heartbeat('puller', ALICE)
  await until(() => changes.length >= 3)
  expect(changes.slice(0, 3)).toEqual([
    ['registered', undefined],
    ['updated', true],
    ['updated', undefined],
  ])
})

test('parking - a heartbeat ends it also if the clock of another node is ahead', async () => {
  const { node, system } = await openBench()
  const registry = await node({ agentTtlSeconds: 60 })
  await registry.register(pullCard('puller'), ALICE)
  const last = await system.eventsStore.getLast(DISCOVERY_CHANNEL, 'puller')
  const ahead = String(Date.now() + 60_000)
  const tags = { ...last?.tags, since: String(last?.sequence), last_seen: ahead, parked_at: ahead }
  await system.eventsStore.publish(DISCOVERY_CHANNEL, { key: 'puller', body: last?.body ?? new Uint8Array(0), tags })
  await until(() => registry.get('puller')?.offline === true)
  await registry.heartbeat('puller', ALICE)
  expect(registry.get('puller')).not.toHaveProperty('offline')
})
