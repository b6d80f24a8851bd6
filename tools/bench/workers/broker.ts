// A broker over the embedded engine in a separate process, driven by the calls below. The packages come from the
// checkout whose entries are its arguments.
import { randomUUID } from 'node:crypto'

import type * as Core from '@signalbox/broker-core'
import type * as Embedded from '@signalbox/engine-embedded'
import { serveCalls } from '@signalbox/testkit/calls'

import type { Work } from './work.ts'
import { measure } from './work.ts'

const [coreEntry = '', engineEntry = ''] = process.argv.slice(2)
const core = (await import(coreEntry)) as typeof Core
const embedded = (await import(engineEntry)) as typeof Embedded

let engine: Core.Engine | undefined
let broker: Core.BrokerHandle | undefined

function handle(): Core.BrokerHandle {
  if (broker === undefined) throw new Error('call open first')
  return broker
}

function port(): Core.Engine {
  if (engine === undefined) throw new Error('call open first')
  return engine
}

interface Load {
  readonly channel: string
  readonly members: number
  readonly durationMs: number
}

/**
 * Runs a step that delivers to subscribers, and waits until `deliveries` has grown by `subscribers` for each publish.
 */
async function fanOut(publishes: number, subscribers: number, publish: () => Promise<unknown>): Promise<Work> {
  const target = delivered + publishes * subscribers
  const arrived = new Promise<void>((resolve) => {
    onDelivery = () => {
      if (delivered >= target) resolve()
    }
  })
  const used = process.cpuUsage()
  const begin = performance.now()
  let left = publishes
  const loop = async () => {
    while (left-- > 0) await publish()
  }
  await Promise.all([loop(), loop(), loop(), loop()])
  await arrived
  onDelivery = undefined
  const { user, system } = process.cpuUsage(used)
  return { operations: publishes * subscribers, wallMs: performance.now() - begin, cpuMicros: user + system }
}

/** Settings of every kind for queues without messages. */
function unrelatedEntry(n: number): Core.SettingsEntry {
  return {
    type: 'queues',
    match: n % 2 === 0 ? `other-${n}` : `others-${n}.*`,
    source: 'api',
    retry: {
      max_receive_count: 5,
      dead_letter_queue: 'failed',
      min_backoff_seconds: 1,
      max_backoff_seconds: 60,
      backoff_factor: 2,
      jitter: 0.2,
    },
    consumers: { paused_until: null, max_per_second: 10, max_in_flight: 10 },
    groups: { mode: 'fair', max_in_flight_per_group: 0 },
    retention: { max_age_seconds: 60, on_expiry: 'drop', compact: false },
    deduplication: { window_seconds: 60 },
  }
}

let delivered = 0
let onDelivery: (() => void) | undefined

function deliver(): void {
  delivered++
  onDelivery?.()
}

serveCalls({
  open: async ({ path, entries = 0 }: { path: string; entries?: number }) => {
    const opened = await embedded.openEmbeddedEngine({ path })
    engine = opened
    if (entries > 0 && 'settings' in opened)
      opened.settings.replace(Array.from({ length: entries }, (_, n) => unrelatedEntry(n)))
    broker = core.createBroker(opened).broker.as(core.ANONYMOUS)
  },
  /** Sends through the Broker as any caller in process does, with rules, ids and observers. */
  send: ({ channel, members, durationMs, bytes }: Load & { bytes: number }): Promise<Work> => {
    const { queues } = handle()
    const body = new Uint8Array(bytes).fill(0x61)
    return measure(members, durationMs, async () => {
      await queues.send(channel, { body })
      return 1
    })
  },
  /** Sends at the port, through the engine alone. */
  enginePut: ({ channel, members, durationMs, bytes }: Load & { bytes: number }): Promise<Work> => {
    const { queues } = port()
    const body = new Uint8Array(bytes).fill(0x61)
    const rest = { metadata: '', tags: {}, clientId: 'bench', delayMs: 0, expirationMs: 0, maxReceiveCount: 0 }
    return measure(members, durationMs, async () => {
      await queues.send(channel, { id: randomUUID(), body, deadLetterQueue: '', ...rest })
      return 1
    })
  },
  /** Receives and acknowledges one message at a time until the queue is empty or the time is over. */
  receiveAndAck: ({ channel, members, durationMs }: Load): Promise<Work> => {
    const { queues } = handle()
    return measure(members, durationMs, async () => {
      const deliveries = await queues.receive(channel, { maxMessages: 1 })
      if (deliveries.length === 0) return 0
      const { settled } = await queues.ack(deliveries.map(({ receipt }) => receipt))
      if (settled !== deliveries.length) throw new Error('an acknowledgement was lost')
      return settled
    })
  },
  /** Receives and acknowledges exactly `count` messages. */
  consume: async ({ channel, members, count }: { channel: string; members: number; count: number }): Promise<Work> => {
    const { queues } = handle()
    let left = count
    return measure(members, Number.POSITIVE_INFINITY, async () => {
      if (left-- <= 0) return 0
      const deliveries = await queues.receive(channel, { maxMessages: 1 })
      const { settled } = await queues.ack(deliveries.map(({ receipt }) => receipt))
      if (settled !== 1) throw new Error(`one message was expected, ${settled} were settled`)
      return settled
    })
  },
  purge: ({ channel }: { channel: string }) => handle().queues.purge(channel),
  /** Stores `count` messages in batches, at full speed. */
  fill: async ({ channel, count, bytes }: { channel: string; count: number; bytes: number }) => {
    const { queues } = handle()
    const batch = Array.from({ length: 500 }, () => ({ body: new Uint8Array(bytes).fill(0x61) }))
    for (let stored = 0; stored < count; stored += batch.length) {
      await queues.sendBatch(channel, batch.slice(0, count - stored))
    }
  },
  waiting: async ({ channel }: { channel: string }) => (await handle().channels.info('queues', channel)).queue?.waiting,
  subscribeEvents: async ({ channel, subscribers }: { channel: string; subscribers: number }) => {
    for (let i = 0; i < subscribers; i++) await handle().events.subscribe(channel, {}, deliver)
  },
  subscribeStore: async ({ channel, subscribers }: { channel: string; subscribers: number }) => {
    for (let i = 0; i < subscribers; i++) await handle().eventsStore.subscribe(channel, { from: 'new' }, {}, deliver)
  },
  fanOutEvents: ({ channel, subscribers, publishes, bytes }: FanOut): Promise<Work> => {
    const body = new Uint8Array(bytes).fill(0x61)
    return fanOut(publishes, subscribers, () => handle().events.publish(channel, { body }))
  },
  fanOutStore: ({ channel, subscribers, publishes, bytes }: FanOut): Promise<Work> => {
    const body = new Uint8Array(bytes).fill(0x61)
    return fanOut(publishes, subscribers, () => handle().eventsStore.publish(channel, { body }))
  },
})

interface FanOut {
  readonly channel: string
  readonly subscribers: number
  readonly publishes: number
  readonly bytes: number
}

process.once('SIGTERM', () => void Promise.resolve(engine?.close()).then(() => process.exit(0)))
