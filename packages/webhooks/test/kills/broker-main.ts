// A broker in a process of its own: it publishes numbers until it is killed, and delivers them to an endpoint.
import { createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

import type { WebhookFormat } from '../../src/index.ts'
import { abuseProtection, EndpointPolicy, openWebhooks } from '../../src/index.ts'

const [path = '', endpoint = '', first = '0', publishes = 'true'] = process.argv.slice(2)

const format: WebhookFormat = {
  name: 'plain',
  maxBatch: 1,
  encode: (_type, [message]) => ({ headers: {}, body: message?.body ?? new Uint8Array() }),
  verify: abuseProtection,
}

const { system } = createBroker(await openEmbeddedEngine({ path }))
const webhooks = await openWebhooks(system, {
  key: new Uint8Array(32),
  formats: [format],
  endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
})
if (webhooks.list().length === 0) {
  const source = { type: 'events_store', channel: 'numbers', format: 'plain' } as const
  await webhooks.create({ owner: 'alice', ...source, endpoint })
}
process.send?.('ready')
process.once('disconnect', () => process.exit())
if (publishes !== 'true') await new Promise(() => {})
for (let n = Number(first); ; n++) {
  await system.eventsStore.publish('numbers', { body: encodeText(String(n)) })
  process.send?.(n)
}
