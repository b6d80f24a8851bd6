// A broker with one queue of groups in a separate process. In the mode `work` it is to be killed: it reports every step
// to the harness. In the mode `left` it reports the messages in the queue, and in the others it measures its own memory
// and times.
import { setTimeout as pause } from 'node:timers/promises'

import { ANONYMOUS, createBroker, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { QueueDelivery } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { Random } from '@signalbox/testkit/random'

const QUEUE = 'groups.work'
const DEAD = 'groups.dead'
const BATCH = 500
const CONSUMERS = 4
const RECEIVED = 64
const LAPSE_MS = 20
const AGAIN_MS = 100
/** On NATS a lease outlives its node, and a message that a killed node had requested comes after the ack wait. */
const NATS_ACK_WAIT_MS = 11_000
const NATS_LEASE_MS = 10_000

export type GroupEngine = 'embedded' | 'nats'

/** The arguments of the worker, as JSON. */
export interface GroupWorkerOptions {
  /** The folder of the store, or the address of a nats-server. */
  readonly place: string
  readonly engine: GroupEngine
  readonly mode: 'work' | 'left' | 'measure-order' | 'measure-fair'
  readonly seed: number
  readonly messages: number
  readonly groups: number
  /** The number of the first message to send. Repeated sends are recognized by the engine. */
  readonly next: number
}

/** A delivered message: its sequence, its group, its number, and whether its first delivery may be its last one. */
export type GroupDelivery = readonly [sequence: number, group: number, number: number, dies: boolean]

export type GroupReport =
  | { readonly step: 'ready' }
  /** `next` is the number of the next message to send; undefined for redriven messages. */
  | { readonly step: 'sent'; readonly sent: readonly GroupDelivery[]; readonly next?: number }
  | { readonly step: 'leased'; readonly messages: readonly GroupDelivery[] }
  | { readonly step: 'lapsing'; readonly sequences: readonly number[] }
  /** Acks and nacks are requested. From now on the next messages of the groups may come. */
  | {
      readonly step: 'ending'
      readonly acked: readonly number[]
      readonly dead: readonly number[]
      readonly returned: readonly number[]
    }
  /** The acks, and the nacks that remove messages, are durable. */
  | { readonly step: 'ended'; readonly sequences: readonly number[] }
  | { readonly step: 'left'; readonly sequences: readonly number[] }
  | { readonly step: 'failed'; readonly text: string }
  | { readonly step: 'order'; readonly report: OrderMeasurement }
  | { readonly step: 'fair'; readonly report: FairMeasurement }

export interface OrderMeasurement {
  readonly idleMib: number
  readonly peakMib: number
  /** The times of receives of up to ten messages, in ms. */
  readonly receiveMs: readonly number[]
  /** The processor time of all threads for each message, from its receive to its ack, in µs. */
  readonly cpuMicros: number
}

export interface FairMeasurement {
  /** For each small group: the number of deliveries before its message, and the time since the first receive, in ms. */
  readonly waits: readonly (readonly [deliveries: number, ms: number])[]
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the harness passes it
const options = JSON.parse(process.argv[2] ?? '{}') as GroupWorkerOptions
const random = new Random(options.seed)
const engine =
  options.engine === 'embedded'
    ? await openEmbeddedEngine({ path: options.place })
    : await openNatsEngine({ servers: [options.place], ackWaitMs: NATS_ACK_WAIT_MS })
const mode = options.mode === 'measure-fair' ? 'fair' : 'ordered'
engine.settings.replace([
  {
    type: 'queues',
    match: QUEUE,
    source: 'api',
    groups: { mode, max_in_flight_per_group: mode === 'fair' ? 0 : 1 },
  },
])
const { queues } = createBroker(engine).broker.as(ANONYMOUS)

function report(message: GroupReport): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)))
  })
}

/** Repeats a call to an engine that does not answer in time: a repeated send or settlement is recognized. */
async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
      await pause(AGAIN_MS)
    }
  }
}

/** One in fifty goes to the dead-letter queue with its first nack, and comes back at the end. */
function diesAtFirst(number: number): boolean {
  return number % 50 === 7
}

async function produce(): Promise<void> {
  for (let next = options.next; next < options.messages;) {
    const numbers = Array.from({ length: Math.min(BATCH, options.messages - next) }, (_, i) => next + i)
    const inputs = numbers.map((number) => ({
      body: encodeText(String(number)),
      tags: { group: String(number % options.groups) },
      deduplicationKey: String(number),
      ...(diesAtFirst(number) ? { maxReceiveCount: 1, deadLetterQueue: DEAD } : {}),
    }))
    const results = await untilAnswered(() => queues.sendBatch(QUEUE, inputs))
    next += numbers.length
    const sent = numbers.map((number, i): GroupDelivery => [
      results[i]?.sequence ?? 0,
      number % options.groups,
      number,
      diesAtFirst(number),
    ])
    await report({ step: 'sent', sent, next })
  }
}

function numberOf({ message }: QueueDelivery): number {
  return Number(Buffer.from(message.body).toString())
}

const sequenceOf = ({ message }: QueueDelivery): number => message.sequence
const receiptOf = ({ receipt }: QueueDelivery): string => receipt

async function redrive(): Promise<void> {
  for (;;) {
    const deliveries = await untilAnswered(() =>
      queues.receive(DEAD, { maxMessages: RECEIVED, waitMs: 5_000, leaseMs: 60_000 }),
    )
    if (deliveries.length === 0) continue
    const inputs = deliveries.map((delivery) => ({
      body: delivery.message.body,
      tags: { group: delivery.message.tags['group'] ?? '' },
      deduplicationKey: `again ${numberOf(delivery)}`,
    }))
    const results = await untilAnswered(() => queues.sendBatch(QUEUE, inputs))
    const sent = deliveries.map((delivery, i): GroupDelivery => {
      const number = numberOf(delivery)
      return [results[i]?.sequence ?? 0, number % options.groups, number, false]
    })
    await report({ step: 'sent', sent })
    await untilAnswered(() => queues.ack(deliveries.map(receiptOf)))
  }
}

async function consume(): Promise<void> {
  const leaseMs = options.engine === 'nats' ? NATS_LEASE_MS : 60_000
  for (;;) {
    const deliveries = await untilAnswered(() =>
      queues.receive(QUEUE, { maxMessages: RECEIVED, waitMs: 5_000, leaseMs }),
    )
    if (deliveries.length === 0) continue
    const messages = deliveries.map((delivery): GroupDelivery => {
      const number = numberOf(delivery)
      return [sequenceOf(delivery), number % options.groups, number, delivery.message.maxReceiveCount > 0]
    })
    await report({ step: 'leased', messages })
    const lapsing: QueueDelivery[] = []
    const nacked: QueueDelivery[] = []
    const acked: QueueDelivery[] = []
    for (const delivery of deliveries) {
      const choice = random.next()
      const dies = delivery.message.maxReceiveCount > 0
      if (choice < 0.01 && !dies) lapsing.push(delivery)
      else if (choice < (dies ? 0.5 : 0.05)) nacked.push(delivery)
      else acked.push(delivery)
    }
    if (lapsing.length > 0) {
      await report({ step: 'lapsing', sequences: lapsing.map(sequenceOf) })
      await untilAnswered(() => queues.extend(lapsing.map(receiptOf), LAPSE_MS))
    }
    const dead = nacked.filter(({ message }) => message.maxReceiveCount > 0)
    const [ackedNow, deadNow] = [acked.map(sequenceOf), dead.map(sequenceOf)]
    const returned = nacked.filter((delivery) => !dead.includes(delivery)).map(sequenceOf)
    await report({ step: 'ending', acked: ackedNow, dead: deadNow, returned })
    const ack = untilAnswered(() => queues.ack(acked.map(receiptOf)))
    const nack = untilAnswered(() => queues.nack(nacked.map(receiptOf)))
    for (const { lost } of [await ack, await nack]) {
      if (lost.length > 0)
        await report({ step: 'failed', text: `${lost.length} receipts were lost within their leases` })
    }
    await report({ step: 'ended', sequences: [...ackedNow, ...deadNow] })
  }
}

/** Receives until nothing comes. A group gives its next message only after an acknowledgement. */
async function left(): Promise<number[]> {
  const sequences: number[] = []
  for (;;) {
    const deliveries = await queues.receive(QUEUE, { maxMessages: 1_000, waitMs: 2_000, leaseMs: 600_000 })
    if (deliveries.length === 0) return sequences
    sequences.push(...deliveries.map(sequenceOf))
    await queues.ack(deliveries.map(receiptOf))
  }
}

function heapMib(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 2 ** 20
}

async function fill(groupOf: (i: number) => string, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1_000) {
    const inputs = Array.from({ length: Math.min(1_000, count - i) }, (_, at) => ({
      body: encodeText(String(i + at)),
      tags: { group: groupOf(i + at) },
    }))
    await queues.sendBatch(QUEUE, inputs)
  }
}

/** The number of leased messages in the measurement: so many groups wait at any time. */
const IN_FLIGHT = 1_000
const MEASURED = 100_000

async function measureOrder(): Promise<OrderMeasurement> {
  const idleMib = heapMib()
  await fill((i) => String(i % options.groups), options.messages)
  let peakMib = heapMib()
  const receiveMs: number[] = []
  const leased: QueueDelivery[] = []
  const cpu = process.cpuUsage()
  const measured = Math.min(MEASURED, options.messages - IN_FLIGHT)
  for (let received = 0; received < measured;) {
    const start = performance.now()
    const deliveries = await queues.receive(QUEUE, { maxMessages: 10, waitMs: 5_000, leaseMs: 600_000 })
    receiveMs.push(performance.now() - start)
    leased.push(...deliveries)
    if (Math.floor(received / 10_000) !== Math.floor((received + deliveries.length) / 10_000)) {
      peakMib = Math.max(peakMib, heapMib())
    }
    received += deliveries.length
    if (leased.length > IN_FLIGHT) await queues.ack(leased.splice(0, 100).map(receiptOf))
  }
  const { user, system } = process.cpuUsage(cpu)
  return { idleMib, peakMib, receiveMs, cpuMicros: (user + system) / measured }
}

async function measureFair(): Promise<FairMeasurement> {
  await fill(() => 'bulk', options.messages)
  await fill((i) => `small ${i}`, options.groups)
  const waits: (readonly [number, number])[] = []
  const start = performance.now()
  for (let deliveries = 0; waits.length < options.groups && deliveries < options.messages; deliveries++) {
    const received = await queues.receive(QUEUE, { waitMs: 5_000, leaseMs: 600_000 })
    if (received[0]?.message.tags['group'] !== 'bulk') waits.push([deliveries, performance.now() - start])
    await queues.ack(received.map(receiptOf))
  }
  return { waits }
}

await report({ step: 'ready' })
if (options.mode === 'work') {
  await Promise.all([produce(), redrive(), ...Array.from({ length: CONSUMERS }, consume)])
} else {
  if (options.mode === 'left') await report({ step: 'left', sequences: await left() })
  else if (options.mode === 'measure-order') await report({ step: 'order', report: await measureOrder() })
  else await report({ step: 'fair', report: await measureFair() })
  await engine.close()
  process.disconnect()
}
