import type { BrokerHandle, BrokerObserver, Caller, Engine, Policy, PolicyAction } from '@signalbox/broker-core'
import {
  Authorization,
  createBroker,
  parsePolicy,
  POLICY_ACTIONS,
  Routing,
  parseRoutingTable,
} from '@signalbox/broker-core'
import { afterAll, expect, onTestFinished, test } from 'vitest'

import { ALICE, BOB, failure, text } from './broker-fixture.ts'
import { harness } from './contract-harness.ts'

const ANYTHING = { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }

/** Rules; what is left out of one is anything, and allowed. */
function policy(...rules: readonly object[]): Policy {
  return parsePolicy({ rules: rules.map((rule) => Object.assign({}, ANYTHING, rule)) })
}

let shared: ReturnType<typeof harness.open> | undefined

afterAll(async () => (await shared)?.dispose())

/** A broker with a policy, over the one engine of this file; each test has channels of its own. */
async function openGuarded(first: Policy, observer: BrokerObserver = {}, routes: unknown = []) {
  const { engine } = await (shared ??= harness.open())
  onTestFinished(async () => {
    for (const { type, name } of await engine.channels.list()) await engine.channels.delete(type, name)
  })
  const authorization = new Authorization(first)
  const routing = new Routing(parseRoutingTable(routes))
  return { authorization, ...createBroker(engine, { authorization, observers: [observer], routing }) }
}

const NOBODY = new AbortController().signal

/** Every way through a handle to a channel, with the action that the policy must allow for it. */
const CALLS: readonly [PolicyAction, string, (handle: BrokerHandle, channel: string) => Promise<unknown>][] = [
  ['send', 'queues', (handle, channel) => handle.queues.send(channel, text('x'))],
  ['send', 'queues', (handle, channel) => handle.queues.sendBatch(channel, [text('x')])],
  ['receive', 'queues', (handle, channel) => handle.queues.receive(channel)],
  ['peek', 'queues', (handle, channel) => handle.queues.peek(channel)],
  ['manage', 'queues', (handle, channel) => handle.queues.purge(channel)],
  ['send', 'events', (handle, channel) => handle.events.publish(channel, text('x'))],
  ['subscribe', 'events', (handle, channel) => handle.events.subscribe(channel, {}, () => {})],
  ['send', 'events_store', (handle, channel) => handle.eventsStore.publish(channel, text('x'))],
  ['read', 'events_store', (handle, channel) => handle.eventsStore.read(channel, { maxMessages: 1 })],
  ['read', 'events_store', (handle, channel) => handle.eventsStore.readLatest(channel, { maxMessages: 1 })],
  ['read', 'events_store', (handle, channel) => handle.eventsStore.getLast(channel, 'key')],
  [
    'subscribe',
    'events_store',
    (handle, channel) => handle.eventsStore.subscribe(channel, { from: 'new' }, {}, () => {}),
  ],
  ['send', 'commands', (handle, channel) => handle.commands.send(channel, text('x'), { timeoutMs: 1, signal: NOBODY })],
  ['respond', 'commands', (handle, channel) => handle.commands.subscribe(channel, {}, () => ({}))],
  ['send', 'queries', (handle, channel) => handle.queries.send(channel, text('x'), { timeoutMs: 1, signal: NOBODY })],
  ['respond', 'queries', (handle, channel) => handle.queries.subscribe(channel, {}, () => ({}))],
  ['list', 'queues', (handle, channel) => handle.channels.info('queues', channel)],
  ['manage', 'events_store', (handle, channel) => handle.channels.create('events_store', channel)],
  ['manage', 'events', (handle, channel) => handle.channels.delete('events', channel)],
]

test.each(CALLS)(
  'S4 - without permission to %s on %s a call is FORBIDDEN, and reported',
  async (action, pattern, call) => {
    const told: unknown[] = []
    const guarded = await openGuarded(policy({ actions: action, patterns: pattern, effect: 'deny' }, {}), {
      denied: (...what) => void told.push(what),
      failed: (...what) => void told.push(what.at(-1)),
    })
    const error = await failure(call(guarded.broker.as(ALICE), 'orders'))
    expect(error).toMatchObject({ code: 'FORBIDDEN', details: { action, pattern, channel: 'orders' } })
    expect(error.message).toBe(`the policy does not let "alice" ${action} on ${pattern} "orders"`)
    expect(told).toEqual([[action, pattern, 'orders', ALICE], 'FORBIDDEN'])
    expect((await guarded.system.channels.list()).filter(({ name }) => name === 'orders')).toEqual([])
  },
)

test.each(CALLS)('S4 - the right to %s on %s alone is enough for it', async (action, pattern, call) => {
  const { broker } = await openGuarded(policy({ actions: action, patterns: pattern, channels: 'orders' }))
  const outcome = await call(broker.as(ALICE), 'orders').catch((error: unknown) => error)
  expect(outcome).not.toMatchObject({ code: 'FORBIDDEN' })
  expect(await failure(call(broker.as(ALICE), 'other'))).toMatchObject({ code: 'FORBIDDEN' })
})

test('S4 - the broker’s own handle and the operators’ broker are not subject to the policy', async () => {
  const { broker, system, operators } = await openGuarded(policy())
  await system.queues.send('orders', text('x'))
  await operators.as(ALICE).queues.send('orders', text('x'))
  expect(await failure(broker.as(ALICE).queues.send('orders', text('x')))).toMatchObject({ code: 'FORBIDDEN' })
  expect(await failure(operators.as(ALICE).queues.send('_AGENTS_.x', text('x')))).toMatchObject({
    code: 'CHANNEL_RESERVED',
  })
})

test('S4 - a dead-letter queue requires the permission to send to it', async () => {
  const { broker, system } = await openGuarded(policy({ channels: 'secret', effect: 'deny' }, {}))
  const { queues } = broker.as(ALICE)
  const input = { ...text('x'), maxReceiveCount: 1, deadLetterQueue: 'secret' }
  for (const call of [queues.send('orders', input), queues.sendBatch('orders', [input])]) {
    expect(await failure(call)).toMatchObject({ code: 'FORBIDDEN', details: { channel: 'secret' } })
  }
  expect(await system.channels.list()).toEqual([])
})

async function names(handle: BrokerHandle): Promise<string[]> {
  return (await handle.channels.list()).map(({ type, name }) => `${type} ${name}`)
}

test('S4 - a list shows the channels that the caller may list, and no others', async () => {
  const { broker, system } = await openGuarded(
    policy(
      { clients: 'alice', actions: 'list', patterns: 'queues', channels: 'a*' },
      { clients: 'bob', actions: 'send' },
    ),
  )
  for (const channel of ['a', 'ab', 'b']) await system.queues.send(channel, text('x'))
  await system.eventsStore.publish('a', text('x'))
  expect(await names(broker.as(ALICE))).toEqual(['queues a', 'queues ab'])
  expect(await names(broker.as(BOB))).toEqual([])
})

test('S4 - info reveals nothing about a channel that may not be listed, not even its existence', async () => {
  const { broker, system } = await openGuarded(policy())
  await system.queues.send('there', text('x'))
  const errors = await Promise.all(
    ['there', 'none'].map((channel) => failure(broker.as(ALICE).channels.info('queues', channel))),
  )
  expect(errors.map(({ code }) => code)).toEqual(['FORBIDDEN', 'FORBIDDEN'])
})

test('S4, M10 - the error for a missing channel names only types under which the caller may list the name', async () => {
  const { broker, system } = await openGuarded(policy({ actions: 'list', patterns: ['queues', 'events'] }))
  await system.queues.send('there', text('x'))
  await system.eventsStore.publish('there', text('x'))
  const error = await failure(broker.as(ALICE).channels.info('events', 'there'))
  expect(error).toMatchObject({ code: 'CHANNEL_NOT_FOUND', details: { types: ['queues'] } })
  expect(error.message).toMatch(/the name exists as queues$/)
})

test('S4, M10 - a similar name is one that the caller may list, and nothing is said of channels that it may not list', async () => {
  const { broker, system } = await openGuarded(policy({ actions: 'list', channels: 'orders.*' }))
  await system.queues.send('orders.eu', text('x'))
  await system.queues.send('secret', text('x'))
  const { channels } = broker.as(ALICE)
  expect((await channels.notFound('queues', 'orders.us')).message).toMatch(/; a similar name is "orders.eu"$/)
  expect((await channels.notFound('queues', 'secrets')).message).toMatch(/of type queues$/)
  const asked = ['orders.us', 'orders.eu', 'secrets', 'secret', '_AGENTS_.x']
  expect(asked.filter((name) => channels.isMissing('queues', name))).toEqual(['orders.us'])
  expect(await channels.subscribers('events', 'secret')).toBeUndefined()
  expect(await channels.subscribers('events', 'orders.none')).toBe(0)
})

test('S4 - the policy of the sender does not apply to copies of the routing table', async () => {
  const { broker, system } = await openGuarded(policy({ channels: 'orders' }), {}, [
    { key: 'orders', routes: 'events_store:archive' },
  ])
  await broker.as(ALICE).queues.send('orders', text('x'))
  expect(await system.eventsStore.read('archive', { maxMessages: 1 })).toHaveLength(1)
})

test('S4 - subscriptions that a new policy denies end with the reason; others continue', async () => {
  const told: unknown[] = []
  const { broker, authorization, system } = await openGuarded(policy({}), {
    denied: (action, pattern, channel) => void told.push([action, pattern, channel]),
  })
  const { events, eventsStore, commands } = broker.as(ALICE)
  const heard: string[] = []
  const ending = [
    await events.subscribe('secret.>', {}, () => void heard.push('secret')),
    await eventsStore.subscribe('secret.a', { from: 'new' }, {}, () => void heard.push('store')),
    await commands.subscribe('secret.a', {}, () => ({})),
  ]
  const staying = await events.subscribe('open', {}, () => void heard.push('open'))
  authorization.replace(policy({ channels: 'secret.a', effect: 'deny' }, {}))
  for (const subscription of ending) expect(await subscription.closed).toMatchObject({ code: 'FORBIDDEN' })
  expect(told).toEqual([
    ['subscribe', 'events', 'secret.>'],
    ['subscribe', 'events_store', 'secret.a'],
    ['respond', 'commands', 'secret.a'],
  ])
  await system.events.publish('secret.a', text('x'))
  await system.eventsStore.publish('secret.a', text('x'))
  await system.events.publish('open', text('x'))
  await expect.poll(() => heard).toEqual(['open'])
  await staying.close()
  expect(await staying.closed).toBeUndefined()
})

test('S4 - a receive that waits ends when a new policy does not allow it, and takes nothing; others wait on', async () => {
  const told: unknown[] = []
  const { broker, authorization } = await openGuarded(policy({}), {
    denied: (action, pattern, channel, { clientId }) => void told.push([action, pattern, channel, clientId]),
  })
  const alice = broker.as(ALICE).queues.receive('orders', { waitMs: 60_000 })
  const bob = broker.as(BOB).queues.receive('orders', { waitMs: 60_000, signal: NOBODY })
  authorization.replace(policy({ clients: 'alice', effect: 'deny' }, {}))
  expect(await failure(alice)).toMatchObject({ code: 'FORBIDDEN' })
  expect(told).toEqual([['receive', 'queues', 'orders', 'alice']])
  await broker.as(BOB).queues.send('orders', text('for bob'))
  expect(await bob).toMatchObject([{ message: { receiveCount: 1 } }])
  // Nobody is watched over who does not wait any more.
  authorization.replace(policy({ effect: 'deny' }))
  expect(told).toHaveLength(1)
})

test('S4 - a message leased in the moment in which a new policy forbids it returns to its place', async () => {
  const { engine } = await (shared ??= harness.open())
  onTestFinished(() => engine.channels.delete('queues', 'orders').then(() => {}))
  const authorization = new Authorization(policy({}))
  const receive: Engine['queues']['receive'] = async (channel, options) => {
    const deliveries = await engine.queues.receive(channel, options)
    authorization.replace(policy({ clients: 'alice', effect: 'deny' }, {}))
    return deliveries
  }
  const queues = Object.assign(Object.create(engine.queues), {
    receive,
    nack: engine.queues.nack.bind(engine.queues),
    send: engine.queues.send.bind(engine.queues),
    listen: engine.queues.listen.bind(engine.queues),
  })
  const { broker } = createBroker(Object.assign(Object.create(engine), { queues }), { authorization })
  await broker.as(BOB).queues.send('orders', text('x'))
  expect(await failure(broker.as(ALICE).queues.receive('orders', { waitMs: 60_000 }))).toMatchObject({
    code: 'FORBIDDEN',
  })
  expect(await broker.as(BOB).queues.receive('orders')).toHaveLength(1)
})

test('S4 - a permission query performs no action, and only a refusal is reported', async () => {
  const told: unknown[] = []
  const { broker } = await openGuarded(policy({ actions: 'call', patterns: 'agents', channels: 'planner' }), {
    denied: (action, pattern, channel, { clientId }) => void told.push([action, pattern, channel, clientId]),
  })
  const handle = broker.as(ALICE)
  expect(handle.permits('call', 'agents', 'planner')).toBe(true)
  expect(handle.permits('call', 'agents', 'other')).toBe(false)
  expect(handle.mayPermit('call', 'agents')).toBe(true)
  expect(handle.mayPermit('register', 'agents')).toBe(false)
  expect(told).toEqual([])
  handle.authorize('call', 'agents', 'planner')
  expect(() => handle.authorize('call', 'agents', 'other')).toThrow('the policy does not let "alice" call')
  expect(told).toEqual([['call', 'agents', 'other', 'alice']])
})

/** A caller whose credentials allow these actions. */
function limited(...actions: readonly PolicyAction[]): Caller {
  return { ...ALICE, actions: new Set(actions) }
}

test.each(CALLS)(
  'S11 - without %s in its credentials a call on %s is FORBIDDEN, and reported',
  async (action, pattern, call) => {
    const told: unknown[] = []
    const guarded = await openGuarded(policy({}), { denied: (...what) => void told.push(what) })
    const caller = limited(...POLICY_ACTIONS.filter((one) => one !== action))
    const error = await failure(call(guarded.broker.as(caller), 'orders'))
    expect(error).toMatchObject({
      code: 'FORBIDDEN',
      details: { action, pattern, channel: 'orders', reason: 'credentials' },
    })
    expect(error.message).toBe(`the credentials of "alice" do not allow ${action}; use a token with the scope for it`)
    expect(told).toEqual([[action, pattern, 'orders', caller]])
    expect(await guarded.system.channels.list()).toEqual([])
  },
)

test.each(CALLS)(
  'S11 - %s in the credentials is enough on %s, with a policy and without',
  async (action, _pattern, call) => {
    const { engine } = await (shared ??= harness.open())
    const { broker } = await openGuarded(policy({}))
    for (const each of [broker, createBroker(engine).broker]) {
      const outcome = await call(each.as(limited(action)), 'orders').catch((error: unknown) => error)
      expect(outcome).not.toMatchObject({ code: 'FORBIDDEN' })
    }
  },
)

test.each(CALLS)(
  'S11 - a denial by the policy of %s on %s is not one by the credentials',
  async (_action, _pattern, call) => {
    const { broker } = await openGuarded(policy())
    const error = await failure(call(broker.as(limited()), 'orders'))
    expect(error.code).toBe('FORBIDDEN')
    expect(error.details).not.toHaveProperty('reason')
  },
)

test('S11 - a list needs credentials for it, unless the policy lets the caller list nothing', async () => {
  const { broker, authorization } = await openGuarded(policy({ patterns: 'queues' }))
  const { channels } = broker.as(limited('send'))
  const refused = { code: 'FORBIDDEN', details: { action: 'list', pattern: 'queues', reason: 'credentials' } }
  expect(await failure(channels.list())).toMatchObject(refused)
  expect(await failure(channels.page({ type: 'queues' }))).toMatchObject(refused)
  expect(await channels.list({ type: 'events' })).toEqual([])
  authorization.replace(policy())
  expect(await channels.list()).toEqual([])
})

test('S11 - credentials are part of each question about permissions, and of subscriptions with wildcards', async () => {
  const { broker } = await openGuarded(policy({}))
  const handle = broker.as(limited('send'))
  expect(handle.permits('subscribe', 'events', 'a')).toBe(false)
  expect(handle.mayPermit('subscribe', 'events')).toBe(false)
  expect(handle.mayPermit('send', 'events')).toBe(true)
  const error = await failure(handle.events.subscribe('a.*', {}, () => {}))
  expect(error).toMatchObject({ code: 'FORBIDDEN', details: { reason: 'credentials', channel: 'a.*' } })
})
