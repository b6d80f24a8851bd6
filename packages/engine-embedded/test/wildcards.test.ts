import type { Subscription } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { ALICE, openBroker } from './broker-fixture.ts'

/** Milliseconds of CPU that the work takes. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

test('events - 2,000 wildcard subscribers over 9,000 channels are cheap to list, to reach and to remove', async () => {
  const { broker } = await openBroker()
  const { channels, events } = broker.as(ALICE)
  for (let i = 0; i < 9_000; i++) await channels.create('events', `site.${i % 100}.sensor.${i}`)
  const subscriptions: Subscription[] = []
  for (let i = 0; i < 2_000; i++) subscriptions.push(await events.subscribe(`site.*.sensor.${i}.>`, {}, () => {}))
  const got: string[] = []
  subscriptions.push(await events.subscribe('site.1.sensor.*', {}, ({ channel }) => got.push(channel)))

  expect(await cost(() => channels.list({ type: 'events' }))).toBeLessThan(500)
  const publish = async (): Promise<void> => {
    for (let i = 0; i < 9_000; i += 10) await events.publish(`site.${i % 100}.sensor.${i}`, { body: encodeText('x') })
    await events.publish('site.1.sensor.1', { body: encodeText('x') })
  }
  expect(await cost(publish)).toBeLessThan(500)
  expect(got).toEqual(['site.1.sensor.1'])
  expect(await cost(() => Promise.all(subscriptions.map((each) => each.close())))).toBeLessThan(500)
})

test('events - a channel counts its wildcard subscribers, and their leaving is activity', async () => {
  const { broker } = await openBroker()
  const { channels, events } = broker.as(ALICE)
  await channels.create('events', 'a.b')
  expect(await channels.info('events', 'a.b')).toMatchObject({ subscribers: 0, lastActivity: 0 })
  const subscriptions = [await events.subscribe('a.*', {}, () => {}), await events.subscribe('>', {}, () => {})]
  await events.subscribe('a.b.>', {}, () => {})
  expect(await channels.info('events', 'a.b')).toMatchObject({ subscribers: 2 })
  const before = Date.now()
  for (const each of subscriptions) await each.close()
  const { subscribers, lastActivity } = await channels.info('events', 'a.b')
  expect([subscribers, lastActivity >= before]).toEqual([0, true])
})
