import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { createBroker, encodeText, PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import type { StoredPauses } from '../src/index.ts'
import { ChannelSettingsLog } from '../src/index.ts'

interface Node {
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly pauses: StoredPauses
  readonly failures: string[]
}

/** Returns a function that starts nodes: brokers over one engine, each with its own pauses. */
async function openStore(): Promise<() => Promise<Node>> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  return async () => {
    const { broker, system } = createBroker(engine)
    const failures: string[] = []
    const failed = (error: unknown): void => void failures.push(String(error))
    const log = await ChannelSettingsLog.open(system, broker.settings, { failed, pauses: broker.pauses })
    onTestFinished(() => log[Symbol.asyncDispose]())
    if (log.pauses === undefined) throw new Error('the log has no pauses')
    return { broker, system, pauses: log.pauses, failures }
  }
}

const later = (seconds: number): number => Math.ceil(Date.now() / 1000) * 1000 + seconds * 1000

const content = (until: unknown) => ({ body: encodeText(JSON.stringify({ until })), tags: {} })

const by = (changedBy: string, until: number, reason = '') => ({ until, reason, changedBy })

test('pauses - a pause is in force on all nodes, and after a restart, until it is resumed', async () => {
  const start = await openStore()
  const [one, two] = [await start(), await start()]
  await one.pauses.pause('jobs', by('ops', PAUSED_UNTIL_RESUMED, 'an incident'))
  expect(one.broker.pausedUntil('jobs')).toBe(PAUSED_UNTIL_RESUMED)
  await expect.poll(() => two.broker.pauses.of('jobs')).toEqual(by('ops', PAUSED_UNTIL_RESUMED, 'an incident'))
  const three = await start()
  expect(three.broker.pausedUntil('jobs')).toBe(PAUSED_UNTIL_RESUMED)
  expect(await two.pauses.resume('jobs')).toBe(true)
  expect(two.broker.pausedUntil('jobs')).toBeUndefined()
  await expect.poll(() => one.broker.pausedUntil('jobs')).toBeUndefined()
  expect(await two.pauses.resume('jobs')).toBe(false)
  expect(await two.pauses.resume('never')).toBe(false)
})

test('pauses - receivers on several nodes extend a pause, and never shorten it', async () => {
  const start = await openStore()
  const [one, two] = [await start(), await start()]
  const ends = [later(10), later(40), later(20), later(30)]
  await Promise.all(
    ends.flatMap((until) => [one, two].map(({ broker }) => broker.pauses.extend('jobs', by('worker', until)))),
  )
  const last = Math.max(...ends)
  for (const { broker } of [one, two]) await expect.poll(() => broker.pausedUntil('jobs')).toBe(last)
  await two.broker.pauses.extend('jobs', by('worker', later(5)))
  expect(two.broker.pausedUntil('jobs')).toBe(last)
  await one.pauses.pause('jobs', by('ops', later(15)))
  expect(one.broker.pausedUntil('jobs')).toBeLessThan(last)
})

test('pauses - many receivers that pause a queue at the same time write one entry', async () => {
  const node = await (await openStore())()
  const until = later(30)
  await Promise.all(Array.from({ length: 50 }, () => node.broker.pauses.extend('jobs', by('worker', until))))
  const { eventsStore } = await node.system.channels.info('events_store', '_AGENTS_.channel_settings')
  expect(eventsStore?.lastSequence).toBe(1)
})

test('pauses - an entry that cannot be read is reported, and one that ended long ago is removed', async () => {
  const start = await openStore()
  const { system } = await start()
  const log = new KeyedLog(system, '_AGENTS_.channel_settings')
  await log.write('p/old', content(new Date(Date.now() - 7_200_000).toISOString()))
  await log.write('p/recent', content(new Date(Date.now() - 60_000).toISOString()))
  await log.write('p/bad', content(5))
  const node = await start()
  expect(node.failures).toEqual([expect.stringContaining('"p/bad" is no pause')])
  await expect.poll(async () => (await log.last('p/old'))?.tombstone).toBe(true)
  expect((await log.last('p/recent'))?.body.byteLength).toBeGreaterThan(0)
  for (const queue of ['old', 'recent', 'bad']) expect(node.broker.pausedUntil(queue)).toBeUndefined()
})
