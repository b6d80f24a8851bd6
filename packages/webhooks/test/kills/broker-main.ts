// A broker in a process of its own: it publishes numbers until it is killed, and delivers them to an endpoint.
import { encodeText } from '@signalbox/broker-core'

import { openPlainWebhooks } from './plain-webhooks.ts'

const [path = '', endpoint = '', first = '0', publishes = 'true'] = process.argv.slice(2)

const { system, webhooks } = await openPlainWebhooks(path)
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
