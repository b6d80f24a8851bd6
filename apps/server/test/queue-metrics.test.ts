import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import type { ChannelName } from '@signalbox/broker-core'
import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { MAX_LISTED_QUEUES, QueueMetrics } from '../src/metrics/queue-metrics.ts'
import { VERSION } from '../src/version.ts'
import { callTool } from './support/mcp.ts'
import { PATIENT, startNats } from './support/nodes.ts'
import { serve } from './support/server.ts'

/** The samples of the series whose name begins so. */
async function scrape(api: string, prefix: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${api}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(prefix))
  return Object.fromEntries(lines.map((line) => [line.replace(/ [^ ]*$/, ''), Number(line.split(' ').at(-1))]))
}

async function listedQueues(given: PartialConfig): Promise<void> {
  const { http, api, broker } = await serve({ ...given, metrics: { queues: ['orders*', 'one?'] } })
  const { queues } = broker.as({ clientId: 'worker' })
  for (const channel of ['orders', 'orders', 'orders.eu', 'one1', 'one22', 'other']) {
    await callTool(http.url, 'queue_send', { channel, body: 'x' })
  }
  await callTool(http.url, 'queue_send', { channel: 'orders.eu', body: 'x', delay_seconds: 60 })
  expect(await queues.receive('orders', { waitMs: 20_000 })).toHaveLength(1)
  await expect
    .poll(() => scrape(api.url, 'broker_queue_depth'), PATIENT)
    .toEqual({
      'broker_queue_depth{queue="one1",state="waiting"}': 1,
      'broker_queue_depth{queue="one1",state="delayed"}': 0,
      'broker_queue_depth{queue="one1",state="in_flight"}': 0,
      'broker_queue_depth{queue="orders",state="waiting"}': 1,
      'broker_queue_depth{queue="orders",state="delayed"}': 0,
      'broker_queue_depth{queue="orders",state="in_flight"}': 1,
      'broker_queue_depth{queue="orders.eu",state="waiting"}': 1,
      'broker_queue_depth{queue="orders.eu",state="delayed"}': 1,
      'broker_queue_depth{queue="orders.eu",state="in_flight"}': 0,
    })
  const ages = await scrape(api.url, 'broker_queue_oldest_message_age_seconds')
  expect(Object.keys(ages)).toHaveLength(3)
  for (const age of Object.values(ages)) expect(age).toBeGreaterThan(0)
  const orders = 'broker_queue_oldest_message_age_seconds{queue="orders"}'
  const next = async () => (await scrape(api.url, orders))[orders]
  // The counts are reused for some seconds, and the age continues.
  await expect.poll(next, PATIENT).toBeGreaterThan(ages[orders] ?? 0)
  await broker.as({ clientId: 'worker' }).channels.delete('queues', 'one1')
  const depths = async () => Object.keys(await scrape(api.url, 'broker_queue_depth'))
  await expect.poll(depths, PATIENT).not.toContain('broker_queue_depth{queue="one1",state="waiting"}')
}

test('metrics - the queues of METRICS_QUEUES have separate series until they are deleted', async () => {
  await expect(listedQueues({})).resolves.toBeUndefined()
})

test.skipIf(NATS_SERVER === undefined)(
  'metrics - with ENGINE=nats the queues of METRICS_QUEUES have separate series too',
  async () => {
    const nats = await startNats()
    await expect(listedQueues({ engine: 'nats', nats: { servers: [nats.url] } })).resolves.toBeUndefined()
  },
  60_000,
)

test('metrics - without METRICS_QUEUES no queue is a label', async () => {
  const { http, api } = await serve()
  await callTool(http.url, 'queue_send', { channel: 'orders', body: 'x' })
  expect(await scrape(api.url, 'broker_queue_depth')).toEqual({})
  expect(await scrape(api.url, 'broker_queues_omitted')).toEqual({})
})

test('metrics - dead-lettered, redelivered, retried and expired messages are counted', async () => {
  const { api, broker } = await serve()
  const { queues } = broker.as({ clientId: 'worker' })
  const body = new Uint8Array(1)
  await queues.send('q', { body, maxReceiveCount: 2, deadLetterQueue: 'dead' })
  for (let i = 0; i < 2; i++) {
    const [delivery] = await queues.receive('q')
    await queues.nack([delivery!.receipt])
  }
  await queues.send('short', { body, expirationMs: 1 })
  const counted = async () => ({
    ...(await scrape(api.url, 'broker_dead')),
    ...(await scrape(api.url, 'broker_redelivered')),
    ...(await scrape(api.url, 'broker_retries')),
    ...(await scrape(api.url, 'broker_expired')),
  })
  await expect.poll(counted, PATIENT).toEqual({
    broker_dead_lettered_total: 1,
    broker_redelivered_total: 1,
    broker_retries_total: 1,
    broker_expired_total: 1,
  })
})

test('metrics - the build and the readiness of the node', async () => {
  const { api } = await serve()
  expect(await scrape(api.url, 'broker_ready')).toEqual({ broker_ready: 1 })
  const [build = ''] = Object.keys(await scrape(api.url, 'broker_build_info'))
  expect(build).toBe(`broker_build_info{version="${VERSION}",node="${process.versions.node}",engine="embedded"}`)
})

/** A source with that many queues, which counts what it is asked. */
function source(count: number) {
  const names: ChannelName[] = Array.from({ length: count }, (_, i) => ({ type: 'queues', name: `q${i}` }))
  const asked = { names: 0, states: 0, oldest: 0 }
  const flow = { incoming: 0, incomingBytes: 0, outgoing: 0, outgoingBytes: 0, subscribers: 0, lastActivity: 0 }
  const queue = { waiting: 1, delayed: 0, inFlight: 0, bytes: 1, deadLettered: 0, expired: 0 }
  let wait: Promise<void> = Promise.resolve()
  return {
    asked,
    stall: (until: Promise<void>) => void (wait = until),
    engine: {
      queues: {
        async oldestWaiting() {
          asked.oldest++
          return Date.now() - 5_000
        },
      },
      channels: {
        async names() {
          asked.names++
          await wait
          return names
        },
        async states(wanted: readonly ChannelName[]) {
          asked.states++
          return wanted.map((name) => ({ ...name, ...flow, queue }))
        },
      },
    },
  }
}

describe('metrics - the cost of a scrape', () => {
  test('at most 200 queues are read, the first by name, and the log has the number of the others once', async () => {
    const registry = new Registry()
    const { engine, asked } = source(250)
    const warnings: unknown[] = []
    const metrics = new QueueMetrics(registry, engine, {
      isListed: () => true,
      log: { warn: (...line: unknown[]) => void warnings.push(line) },
      shownMs: 0,
    })
    await metrics.refresh()
    await metrics.refresh()
    expect(asked).toEqual({ names: 2, states: 2 * MAX_LISTED_QUEUES, oldest: 2 * MAX_LISTED_QUEUES })
    const page = await registry.metrics()
    expect(page.match(/^broker_queue_depth\{.*state="waiting"/gm)).toHaveLength(MAX_LISTED_QUEUES)
    expect(page).toContain('broker_queues_omitted 50')
    expect(warnings).toEqual([
      [{ omitted: 50 }, expect.stringContaining('METRICS_QUEUES matches more than 200 queues')],
    ])
  })

  test('scrapes share a pass, and reuse its result', async () => {
    const { engine, asked } = source(3)
    const metrics = new QueueMetrics(new Registry(), engine, { isListed: () => true, log: { warn() {} } })
    await Promise.all([metrics.refresh(), metrics.refresh()])
    await metrics.refresh()
    expect(asked).toEqual({ names: 1, states: 3, oldest: 3 })
  })

  test('an engine that does not answer delays a scrape by two seconds, and the page has the previous depths', async () => {
    const registry = new Registry()
    const { engine, stall } = source(1)
    const metrics = new QueueMetrics(registry, engine, { isListed: () => true, log: { warn() {} }, shownMs: 0 })
    await metrics.refresh()
    const { promise, resolve } = Promise.withResolvers<void>()
    stall(promise)
    const before = performance.now()
    await metrics.refresh()
    expect(performance.now() - before).toBeLessThan(8_000)
    expect(await registry.metrics()).toContain('broker_queue_depth{queue="q0",state="waiting"} 1')
    resolve()
  })
})
