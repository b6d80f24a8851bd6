import type { BrokerHandle, SettingsTable } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { ChannelSettingsLog, MAX_ENTRIES } from '../src/index.ts'

const RETRY = { type: 'queues', match: 'jobs.*', retry: { max_receive_count: 5 } } as const

async function openBroker(path = testFolder()) {
  const engine = await openEmbeddedEngine({ path })
  onTestFinished(() => engine.close())
  const { broker, system } = createBroker(engine)
  return { engine, system, table: broker.settings }
}

async function openLog(system: BrokerHandle, table: SettingsTable, failed: (error: unknown) => void = fail) {
  const log = await ChannelSettingsLog.open(system, table, { failed })
  onTestFinished(() => log[Symbol.asyncDispose]())
  return log
}

function fail(error: unknown): void {
  throw error
}

test('settings log - an entry is in force when its write resolves, with its defaults', async () => {
  const { system, table } = await openBroker()
  const log = await openLog(system, table)
  const { revision } = await log.set(RETRY, 'alice')
  expect(table.of('queues', 'jobs.a').retry).toMatchObject({ max_receive_count: 5, backoff_factor: 2 })
  expect(log.entries()).toMatchObject([{ given: RETRY, revision, changedBy: 'alice' }])
  expect(await log.remove(RETRY)).toBe(true)
  expect(table.active).toBe(false)
  expect(await log.remove(RETRY)).toBe(false)
})

test('settings log - entries are in force again before a restarted node opens', async () => {
  const path = testFolder()
  const first = await openBroker(path)
  const log = await openLog(first.system, first.table)
  await log.set(RETRY, 'alice')
  await log[Symbol.asyncDispose]()
  await first.engine.close()
  const { system, table } = await openBroker(path)
  await openLog(system, table)
  expect(table.of('queues', 'jobs.a').retry?.max_receive_count).toBe(5)
})

test('settings log - a change with an old revision is a CONFLICT that names the newer one', async () => {
  const { system, table } = await openBroker()
  const log = await openLog(system, table)
  const { revision } = await log.set(RETRY, 'alice', 0)
  await expect(log.set(RETRY, 'bob', 0)).rejects.toMatchObject({
    code: 'CONFLICT',
    message: `the entry for queues "jobs.*" has the revision ${revision}, not 0; read it again`,
  })
  await expect(log.remove(RETRY, revision + 1)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(log.entries()).toMatchObject([{ changedBy: 'alice' }])
  expect(await log.remove(RETRY, revision)).toBe(true)
})

test('settings log - a file is less than an entry of operators, and stays when that goes', async () => {
  const { system, table } = await openBroker()
  const log = await openLog(system, table)
  log.useFile([{ type: 'queues', match: 'jobs.*', source: 'file', description: 'file' }])
  await log.set({ type: 'queues', match: 'jobs.*', description: 'operator' }, 'alice')
  expect(table.of('queues', 'jobs.a').description).toBe('operator')
  await log.remove({ type: 'queues', match: 'jobs.*' })
  expect(table.of('queues', 'jobs.a').description).toBe('file')
})

test('settings log - an entry of a newer version is reported, and its schema or groups are marked', async () => {
  const { system, table } = await openBroker()
  const newer = new KeyedLog(system, '_AGENTS_.channel_settings')
  const write = (match: string, settings: object) =>
    newer.write(`e/queues/${match}`, { body: encodeText(JSON.stringify({ type: 'queues', match, ...settings })) })
  await write('strict', { groups: { mode: 'by_weight' } })
  await write('loose', { retry: { curve: 'linear' } })
  const reports: unknown[] = []
  const log = await openLog(system, table, (error) => reports.push(error))
  expect(reports.map(String)).toEqual([
    expect.stringContaining('entry 1 of _AGENTS_.channel_settings was left out: groups.mode is "by_weight"'),
    expect.stringContaining('entry 2 of _AGENTS_.channel_settings was left out: retry.curve is unknown'),
  ])
  expect(table.of('queues', 'strict').unreadable).toBe(true)
  expect(table.of('queues', 'loose').unreadable).toBeUndefined()
  expect(log.entries()).toEqual([])
})

const entry = (n: number, description: string) => ({ type: 'queues', match: `q${n}`, description }) as const

test('settings log - there are at most a thousand entries, and each can still be changed', async () => {
  const { system, table } = await openBroker()
  const log = await openLog(system, table)
  await Promise.all(Array.from({ length: MAX_ENTRIES }, (_, n) => log.set(entry(n, 'first'), 'alice')))
  await expect(log.set(entry(MAX_ENTRIES, 'one more'), 'alice')).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await log.set(entry(7, 'changed'), 'alice')
  expect(table.of('queues', 'q7').description).toBe('changed')
})

test.skipIf(NATS_SERVER === undefined)('settings log - the nodes of a cluster have the same entries', async () => {
  const server = await NatsServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const nodes = await Promise.all(
    ['one', 'two'].map(async () => {
      const engine = await openNatsEngine({ servers: [server.url], replicas: 1 })
      onTestFinished(() => engine.close())
      const { broker, system } = createBroker(engine)
      return { table: broker.settings, log: await openLog(system, broker.settings) }
    }),
  )
  const [one, two] = nodes
  await one?.log.set(RETRY, 'alice')
  await expect.poll(() => two?.table.of('queues', 'jobs.a').retry?.max_receive_count).toBe(5)
  await two?.log.remove(RETRY)
  await expect.poll(() => one?.table.active).toBe(false)
})
