// Delivers messages to an endpoint in a separate process: through webhooks over the embedded engine, or by a loop of
// signed requests. The packages come from the checkout whose entries are its arguments; the last two arguments are the
// URL of the endpoint and the folder of the store.
import { createHmac, createSecretKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'

import type * as Core from '@signalbox/broker-core'
import type * as Embedded from '@signalbox/engine-embedded'
import { serveCalls } from '@signalbox/testkit/calls'
import type * as Hooks from '@signalbox/webhooks'

import type { Work } from './work.ts'

interface BarePool {
  request(options: object): Promise<{ readonly body: { dump(): Promise<void> } }>
}

const [coreEntry = '', engineEntry = '', webhooksEntry = '', endpoint = '', path = ''] = process.argv.slice(2)

const CHANNEL = 'bench'
const SECRET = new Uint8Array(32)

/** The deliveries of each member before the measurement of a round: the members start, and open their connections. */
const STARTED = 8

export interface Load {
  readonly durationMs: number
}

export interface Setup {
  /** The deliveries in flight at a time. */
  readonly members: number
  /** The events in the store. */
  readonly events: number
  readonly bytes: number
}

/** Sends deliveries in the background, between `start` and `stop`. */
interface Sender {
  readonly members: number
  readonly delivered: () => number
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

let sender: Sender | undefined

function openBareSender({ members, bytes }: Setup): Sender {
  const require = createRequire(webhooksEntry)
  /** The version that the package uses, through http-kit. */
  const undici: { readonly Pool: new (origin: string, options: object) => BarePool } = createRequire(
    require.resolve('@signalbox/http-kit/package.json'),
  )('undici')
  const body = new Uint8Array(bytes).fill(0x61)
  const { origin, pathname } = new URL(endpoint)
  // The settings of webhooks.
  const timeouts = { keepAliveTimeout: 1_500, keepAliveMaxTimeout: 1_500, headersTimeout: 0, bodyTimeout: 0 }
  const pool = new undici.Pool(origin, { connections: members, pipelining: 1, ...timeouts })
  const key = createSecretKey(SECRET)
  let n = 0
  let delivered = 0
  const state = { running: false }
  let loops: Promise<unknown> = Promise.resolve()
  const loop = async (): Promise<void> => {
    while (state.running) {
      // As long as the ids of webhooks.
      const id = `msg_${'x'.repeat(22)}_${n++}`
      const time = String(Math.floor(Date.now() / 1000))
      const signature = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
      const headers = {
        'user-agent': 'signalbox-webhooks',
        'webhook-id': id,
        'webhook-timestamp': time,
        'webhook-signature': `v1,${signature}`,
      }
      const answer = await pool.request({ path: pathname, method: 'POST', headers, body })
      await answer.body.dump()
      delivered++
    }
  }
  return {
    members,
    delivered: () => delivered,
    async start() {
      state.running = true
      loops = Promise.all(Array.from({ length: members }, loop))
    },
    async stop() {
      state.running = false
      await loops
    },
  }
}

async function openWebhooksSender({ members, events, bytes }: Setup): Promise<Sender> {
  const { createBroker } = (await import(coreEntry)) as typeof Core
  const { openEmbeddedEngine } = (await import(engineEntry)) as typeof Embedded
  const { abuseProtection, EndpointPolicy, openWebhooks } = (await import(webhooksEntry)) as typeof Hooks
  const { system } = createBroker(await openEmbeddedEngine({ path }))
  let delivered = 0
  const webhooks = await openWebhooks(system, {
    key: SECRET,
    formats: [
      {
        name: 'bytes',
        maxBatch: 1,
        encode: (_type, [message]) => ({ headers: {}, body: message?.body ?? new Uint8Array() }),
        verify: abuseProtection,
      },
    ],
    endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
    maxInFlightOfEndpoint: members,
    hooks: { attempted: (outcome) => void (outcome === 'delivered' && delivered++) },
  })
  const body = new Uint8Array(bytes).fill(0x61)
  const publishAll = async (): Promise<void> => {
    for (let i = 0; i < events / members; i++) await system.eventsStore.publish(CHANNEL, { body })
  }
  await Promise.all(Array.from({ length: members }, publishAll))
  const ids: string[] = []
  for (let i = 0; i < members; i++) {
    const source = { type: 'events_store', channel: CHANNEL, format: 'bytes' } as const
    const { subscription } = await webhooks.create({ owner: 'bench', ...source, endpoint })
    ids.push(subscription.id)
    await webhooks.pause(subscription.id)
  }
  return {
    members,
    delivered: () => delivered,
    async start() {
      await Promise.all(ids.map((id) => webhooks.redeliver(id, 1)))
      await Promise.all(ids.map((id) => webhooks.resume(id)))
    },
    async stop() {
      await Promise.all(ids.map((id) => webhooks.pause(id)))
    },
  }
}

serveCalls({
  openBare(setup: Setup) {
    sender = openBareSender(setup)
  },
  async openWebhooks(setup: Setup) {
    sender = await openWebhooksSender(setup)
  },
  async send({ durationMs }: Load): Promise<Work> {
    if (sender === undefined) throw new Error('open the sender first')
    const { members, delivered, start, stop } = sender
    const started = delivered() + members * STARTED
    await start()
    while (delivered() < started) await delay(1)
    const before = delivered()
    const used = process.cpuUsage()
    const begin = performance.now()
    await delay(durationMs)
    const { user, system } = process.cpuUsage(used)
    const work = { operations: delivered() - before, wallMs: performance.now() - begin, cpuMicros: user + system }
    await stop()
    return work
  },
})
process.once('SIGTERM', () => process.exit(0))
