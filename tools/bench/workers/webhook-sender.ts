// Delivers messages to an endpoint in a separate process: through webhooks over the embedded engine, or by a loop of
// signed requests.
import { createHmac, createSecretKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'

import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { abuseProtection, EndpointPolicy, openWebhooks } from '@signalbox/webhooks'

import { serveCalls } from '../../harness/calls.ts'
import type { Work } from './work.ts'
import { measure } from './work.ts'

interface BarePool {
  request(options: object): Promise<{ readonly body: { dump(): Promise<void> } }>
}

/** The version that the package uses. */
const { Pool }: { readonly Pool: new (origin: string, options: object) => BarePool } = createRequire(
  import.meta.resolve('@signalbox/webhooks/package.json'),
)('undici')

const [endpoint = '', path = ''] = process.argv.slice(2)
const CHANNEL = 'bench'
const SECRET = new Uint8Array(32)

export interface Load {
  /** The deliveries in flight at a time. */
  readonly members: number
  readonly durationMs: number
}

export interface Setup {
  readonly members: number
  /** The events in the store. */
  readonly events: number
  readonly bytes: number
}

let send: ((load: Load) => Promise<Work>) | undefined

serveCalls({
  openBare({ members, bytes }: Setup) {
    const body = new Uint8Array(bytes).fill(0x61)
    const { origin, pathname } = new URL(endpoint)
    const pool = new Pool(origin, { connections: members })
    const key = createSecretKey(SECRET)
    let n = 0
    send = ({ durationMs }) =>
      measure(members, durationMs, async () => {
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
        return 1
      })
  },
  async openWebhooks({ members, events, bytes }: Setup) {
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
    send = async ({ durationMs }) => {
      await Promise.all(ids.map((id) => webhooks.redeliver(id, 1)))
      const before = delivered
      const used = process.cpuUsage()
      const begin = performance.now()
      await Promise.all(ids.map((id) => webhooks.resume(id)))
      await delay(durationMs)
      const { user, system: kernel } = process.cpuUsage(used)
      const work = { operations: delivered - before, wallMs: performance.now() - begin, cpuMicros: user + kernel }
      await Promise.all(ids.map((id) => webhooks.pause(id)))
      return work
    }
  },
  send(load: Load) {
    if (send === undefined) throw new Error('open the sender first')
    return send(load)
  },
})
process.once('SIGTERM', () => process.exit(0))
