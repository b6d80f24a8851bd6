// A broker in a separate process, to be killed: its producers and consumers report every step to the harness after its
// confirmation. With the argument `drain` it only empties the queue and ends.
import { ANONYMOUS, createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { Random } from '@signalbox/testkit/random'

const [path = '', seed = '0', mode = 'work'] = process.argv.slice(2)
const QUEUE = 'crash.core'
const PRODUCERS = 8
const CONSUMERS = 8
/** Long enough to outlive every life under load. */
const LEASE_MS = 60_000
const SHORT_LEASE_MS = 30

const engine = await openEmbeddedEngine({ path })
const { queues } = createBroker(engine).broker.as(ANONYMOUS)
const random = new Random(Number(seed))

function report(message: CoreReport): void {
  process.send?.(message)
}

/** Resolves when the harness certainly has the report, even if this process dies. */
function reported(message: CoreReport): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)))
  })
}

async function produce(producer: number): Promise<void> {
  for (let i = 0; ; i++) {
    const id = `${seed}-${producer}-${i}`
    await queues.send(QUEUE, { body: encodeText(id) })
    report({ step: 'sent', id })
  }
}

/** Leases a batch and does a random lease operation with each message. */
async function consume(): Promise<void> {
  for (;;) {
    const lapse = random.chance(0.05)
    const leaseMs = lapse ? SHORT_LEASE_MS : LEASE_MS
    const deliveries = await queues.receive(QUEUE, { maxMessages: random.integer(1, 5), waitMs: 1000, leaseMs })
    for (const { receipt, message } of deliveries) {
      const id = Buffer.from(message.body).toString()
      report({ step: 'leased', id, lapses: lapse })
      if (lapse) continue
      const choice = random.next()
      if (choice < 0.1) {
        report({ step: 'nacking', id })
        await queues.nack([receipt])
        continue
      }
      if (choice < 0.2) await queues.extend([receipt], LEASE_MS)
      // An ack can be durable although its confirmation was lost, so the harness must know of the request.
      await reported({ step: 'acking', id })
      const { settled } = await queues.ack([receipt])
      if (settled === 1) report({ step: 'acked', id })
      else report({ step: 'failed', text: `an ack inside its lease was lost: ${id}` })
    }
  }
}

async function drain(): Promise<void> {
  for (;;) {
    const deliveries = await queues.receive(QUEUE, { maxMessages: 100 })
    if (deliveries.length === 0) return
    for (const { message } of deliveries) {
      report({ step: 'leased', id: Buffer.from(message.body).toString(), lapses: false })
    }
    await queues.ack(deliveries.map(({ receipt }) => receipt))
    for (const { message } of deliveries) report({ step: 'acked', id: Buffer.from(message.body).toString() })
  }
}

report({ step: 'ready' })
if (mode === 'drain') {
  await drain()
  await engine.close()
  report({ step: 'drained' })
  process.disconnect()
} else {
  const members = [
    ...Array.from({ length: PRODUCERS }, (_, producer) => produce(producer)),
    ...Array.from({ length: CONSUMERS }, consume),
  ]
  await Promise.all(members).catch((error: unknown) => report({ step: 'failed', text: String(error) }))
}

/** The reports of a broker to the harness: each step after its confirmation; `acking` and `nacking` before the call. */
export type CoreReport =
  | { readonly step: 'ready' | 'drained' }
  | { readonly step: 'sent' | 'acking' | 'acked' | 'nacking'; readonly id: string }
  | { readonly step: 'leased'; readonly id: string; readonly lapses: boolean }
  | { readonly step: 'failed'; readonly text: string }
