// A broker whose clock and retry pauses run fast. It delivers numbers to an endpoint until it is killed.
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

import { decodeText, encodeText } from '@signalbox/broker-core'

import { openPlainWebhooks } from './plain-webhooks.ts'

/** Shorter pauses are not retries. */
const SHORTEST_RETRY_MS = 400

const [path = '', endpoint = '', epoch = '0', speed = '1', count = '0'] = process.argv.slice(2)

const { setTimeout: delay } = timers
const realNow = Date.now.bind(Date)
Date.now = () => Math.round(Number(epoch) + (realNow() - Number(epoch)) * Number(speed))
Object.assign(timers, {
  setTimeout: (ms: number, value: unknown, options: object) =>
    delay(ms < SHORTEST_RETRY_MS ? ms : ms / Number(speed), value, options),
})
syncBuiltinESMExports()

const { system, webhooks } = await openPlainWebhooks(path)
if (webhooks.list().length === 0) {
  for (let n = 0; n < Number(count); n++) await system.eventsStore.publish('numbers', { body: encodeText(String(n)) })
  const source = { type: 'events_store', channel: 'numbers', format: 'plain', start: 'first' } as const
  await webhooks.create({ owner: 'alice', ...source, endpoint })
}
process.once('disconnect', () => process.exit())
process.send?.('ready')
// A request for the dead letters.
process.on('message', () => void sendLetters())

async function sendLetters(): Promise<void> {
  const queue = webhooks.list()[0]?.deadLetterQueue ?? ''
  const letters = await system.queues.receive(queue, { maxMessages: 100, waitMs: 1_000 })
  process.send?.(letters.map(({ message: { body, tags } }) => ({ body: decodeText(body), tags })))
}
