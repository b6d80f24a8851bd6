// A process that writes until it is killed, and prints what was confirmed to it, a line each.
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'

import { encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

const [path = ''] = process.argv.slice(2)
const engine = await openEmbeddedEngine({ path })
// Synchronous, so that a line that follows the confirmation is out before anything else happens.
function tell(line: string): void {
  for (;;) {
    try {
      writeSync(1, `${line}\n`)
      return
    } catch (error) {
      // The pipe is full: whoever reads it is slower than we write.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    }
  }
}
tell(`ready ${process.pid}`)

const message = (text: string) => ({
  id: randomUUID(),
  clientId: 'child',
  body: encodeText(text),
  metadata: '',
  tags: {},
})

async function produce(producer: number): Promise<void> {
  for (let i = 0; ; i++) {
    const text = `${producer}-${i}`
    const deduplicationId = `${process.pid} ${text}`
    const options = { delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '', deduplicationId }
    await engine.queues.send('queue', { ...message(text), ...options })
    tell(`sent ${text}`)
    const { sequence } = await engine.eventsStore.append('log', message(text))
    tell(`appended ${sequence} ${text}`)
  }
}

async function consume(): Promise<void> {
  for (;;) {
    const deliveries = await engine.queues.receive('queue', {
      maxMessages: 5,
      waitMs: 1_000,
      leaseMs: 60_000,
      clientId: 'child',
    })
    for (const { message } of deliveries) tell(`acking ${Buffer.from(message.body).toString()}`)
    const receipts = deliveries.map(({ receipt }) => receipt)
    await engine.queues.ack(receipts, 'child')
    for (const { message } of deliveries) tell(`acked ${Buffer.from(message.body).toString()}`)
  }
}

await Promise.all([...Array.from({ length: 8 }, (_, i) => produce(i)), consume()])
