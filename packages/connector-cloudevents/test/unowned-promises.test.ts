import type { Broker } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { CE_ROUTES, ceConnector } from '../src/index.ts'
import { event, openCe, serveHandler } from './ce-server.ts'

/** Collects what would have ended the process. */
function unhandled(): readonly unknown[] {
  const found: unknown[] = []
  const take = (error: unknown): void => void found.push(error)
  process.on('unhandledRejection', take)
  onTestFinished(() => void process.off('unhandledRejection', take))
  return found
}

/** Node reports a rejection once the microtasks of its turn have run. */
const someTurns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

test('containment - a group member that reads nothing and disconnects leaves the server running', async () => {
  const rejections = unhandled()
  const { user, subscribe, connector } = await openCe()
  const body = Buffer.from(JSON.stringify('x'.repeat(1_000_000)))
  await Promise.all(Array.from({ length: 16 }, () => user.eventsStore.publish('s', { body })))
  const slow = await subscribe('events-store?channel=s&group=g&events_store_type=2')
  slow.pause()
  const delivered = async (): Promise<number> => (await user.channels.info('events_store', 's')).outgoing
  await until(async () => {
    const before = await delivered()
    await someTurns()
    return before > 0 && before === (await delivered())
  })
  expect(await delivered()).toBeLessThan(16)
  slow.close()
  await until(() => connector.openStreams() === 0)
  await someTurns()
  expect(rejections).toEqual([])
})

/** A broker that fails in every call, as one with a bug would. */
function brokenBroker(broker: Broker): Broker {
  const fails = new Proxy(
    {},
    { get: () => (): Promise<never> => Promise.reject(new Error('a bug, with a secret in its text')) },
  )
  const types = ['queues', 'events', 'eventsStore', 'commands', 'queries', 'channels']
  const handle = Object.create(
    broker.as({ clientId: 'anonymous' }),
    Object.fromEntries(types.map((type) => [type, { value: fails }])),
  )
  return Object.create(broker, { as: { value: () => handle } })
}

/** Values of the parameters that some routes require. */
const REQUIRED = new Map([
  ['channel', 'c'],
  ['receipt', 'c'],
  ['visibility_seconds', '30'],
])

test('containment - a route whose broker call fails answers an internal error, and reports the failure', async () => {
  const rejections = unhandled()
  const { broker } = await openCe()
  const failures: unknown[] = []
  const connector = ceConnector(brokenBroker(broker), { hooks: { failed: (error) => failures.push(error) } })
  const base = await serveHandler(connector)
  const answer = 'send/response?request_id=1'
  for (const { name, method, input: query } of CE_ROUTES.filter(({ name }) => !answer.startsWith(name))) {
    const parameters = Object.keys(query.properties).filter((parameter) => REQUIRED.has(parameter))
    const search = parameters.map((parameter) => `${parameter}=${REQUIRED.get(parameter)}`).join('&')
    const response = await fetch(`${base}/${name}?${search}`, {
      method,
      ...(method === 'POST'
        ? { headers: { 'content-type': 'application/cloudevents+json' }, body: JSON.stringify(event()) }
        : {}),
    })
    expect([name, response.status, await response.json()]).toEqual([
      name,
      500,
      { is_error: true, message: 'internal error', data: { code: 'INTERNAL' } },
    ])
  }
  await someTurns()
  expect(failures).toHaveLength(CE_ROUTES.length - 1)
  expect(rejections).toEqual([])
})
