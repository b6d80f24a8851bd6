import type { BrokerHandle, Caller, CallerLimitName } from '@signalbox/broker-core'
import { createBroker, parseRoutingTable, Routing } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'

import { failure, text } from './broker-fixture.ts'
import { harness } from './contract-harness.ts'

/** Two ClientIDs of one account, one of another, and one without limits. */
const ALICE: Caller = { clientId: 'alice', account: 'tenant' }
const ALAN: Caller = { clientId: 'alan', account: 'tenant' }
const BOB: Caller = { clientId: 'bob' }
const ROOT: Caller = { clientId: 'root' }

async function openLimited(channels: number, waitingRequests = 0) {
  const opened = await harness.open()
  onTestFinished(() => opened.dispose())
  const refused: [CallerLimitName, string][] = []
  const created = createBroker(opened.engine, {
    limitsOf: ({ clientId }) =>
      clientId === 'root' ? { channels: 0, waitingRequests: 0 } : { channels, waitingRequests },
    onLimit: (name, { clientId }) => refused.push([name, clientId]),
    routing: new Routing(parseRoutingTable([{ key: 'routed', routes: 'queues:to.{ce_x}' }])),
  })
  return { ...created, engine: opened.engine, refused }
}

const CREATIONS: Readonly<Record<string, (handle: BrokerHandle, name: string) => Promise<unknown>>> = {
  'queues.send': ({ queues }, name) => queues.send(name, text('x')),
  'queues.sendBatch': ({ queues }, name) => queues.sendBatch(name, [text('x'), text('y')]),
  'events.publish': ({ events }, name) => events.publish(name, text('x')),
  'events.subscribe': ({ events }, name) => events.subscribe(name, {}, () => {}),
  'eventsStore.publish': ({ eventsStore }, name) => eventsStore.publish(name, text('x')),
  'eventsStore.subscribe': ({ eventsStore }, name) => eventsStore.subscribe(name, { from: 'new' }, {}, () => {}),
  'commands.send': ({ commands }, name) => commands.send(name, text('x'), { timeoutMs: 1 }).catch(noAnswer),
  'queries.subscribe': ({ queries }, name) => queries.subscribe(name, {}, () => ({})),
  'channels.create': ({ channels }, name) => channels.create('queues', name),
  // The last, because these queues count and do not exist yet.
  'a dead-letter queue': ({ queues }, name) =>
    queues.send('there', { ...text('x'), maxReceiveCount: 1, deadLetterQueue: name }),
}

function noAnswer(error: unknown): void {
  if (!(error instanceof Error && error.message.includes('had no subscriber'))) throw error
}

test('limits - a channel counts for the account that was the first to use it, however it came to be', async () => {
  const { broker, operators, system, refused, engine } = await openLimited(2)
  await broker.as(ROOT).queues.send('there', text('x'))
  for (const [way, create] of Object.entries(CREATIONS)) {
    const { length: before } = refused
    await create(broker.as(ALICE), 'one')
    await create(broker.as(ALAN), 'two')
    // Those that exist are free.
    await create(broker.as(ALICE), 'two')
    const error = await failure(create(broker.as(ALICE), 'three'))
    expect([way, error.code, error.details]).toEqual([way, 'CALLER_LIMIT', { name: 'caller_channels', limit: 2 }])
    expect(refused.slice(before)).toEqual([['caller_channels', 'alice']])
    await create(broker.as(BOB), 'three')
    await create(broker.as(ROOT), 'four')
    await create(operators.as(ALICE), 'five')
    await create(system, 'six')
    for (const { type, name } of await engine.channels.names()) {
      if (name !== 'there') await operators.as(ROOT).channels.delete(type, name)
    }
  }
})

test('limits - refused and deleted messages do not count, and a route does not bypass the limit', async () => {
  const { broker, engine, refused } = await openLimited(2)
  const { queues, events, channels } = broker.as(ALICE)
  expect((await failure(queues.send('q', { ...text('x'), delayMs: -1 }))).code).toBe('ARGUMENT_INVALID')
  const large = new Uint8Array(engine.limits.maxMessageBytes + 1)
  expect((await failure(events.publish('e', { body: large }))).code).toBe('MESSAGE_TOO_LARGE')
  for (let i = 0; i < 5; i++) {
    await queues.send(`q${i}`, text('x'))
    await channels.delete('queues', `q${i}`)
  }
  await events.publish('routed', { ...text('x'), tags: { ce_x: 'one' } })
  await events.publish('routed', { ...text('x'), tags: { ce_x: 'two' } })
  expect(await engine.channels.names('queues')).toEqual([{ type: 'queues', name: 'to.one' }])
  expect(refused).toEqual([['caller_channels', 'alice']])
  // A wildcard creates no channel.
  for (const name of ['one', 'two', '*', 'a.>', 'one']) await broker.as(BOB).events.subscribe(name, {}, () => {})
  // Deleting a dead-letter queue that is still to come does not make room.
  const dying = { ...text('x'), maxReceiveCount: 1, deadLetterQueue: 'letters' }
  await channels.delete('events', 'routed')
  await queues.send('to.one', dying)
  expect(await channels.delete('queues', 'letters')).toBe(false)
  expect((await failure(queues.send('more', text('x')))).code).toBe('CALLER_LIMIT')
})

test('limits - an account has only so many commands and queries waiting', async () => {
  const { broker, refused } = await openLimited(0, 2)
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  await broker.as(BOB).commands.subscribe('c', {}, async () => {
    ask()
    await answered
    return {}
  })
  const options = { timeoutMs: 10_000 }
  const command = broker.as(ALICE).commands.send('c', text('x'), options)
  const leaving = new AbortController()
  const query = broker.as(ALAN).queries.send('q', text('x'), { ...options, signal: leaving.signal })
  await asked
  const error = await failure(broker.as(ALICE).queries.send('q', text('x'), options))
  expect([error.code, error.details]).toEqual(['CALLER_LIMIT', { name: 'caller_waiting_requests', limit: 2 }])
  expect(refused).toEqual([['caller_waiting_requests', 'alice']])
  leaving.abort(new Error('gone'))
  await expect(query).rejects.toThrow('gone')
  const next = broker.as(ALAN).commands.send('c', text('x'), options)
  answer()
  await Promise.all([command, next])
  await broker.as(BOB).commands.send('c', text('x'), options)
})
