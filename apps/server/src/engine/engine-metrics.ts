import type { EngineStats } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Counter, Gauge, Histogram } from 'prom-client'

const COMMIT_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
const COMMIT_OPERATIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

/**
 * Creates the engine's gauges; the returned function sets them. They keep their last values while
 * the engine cannot answer.
 */
export function engineMetrics(registry: Registry, stats: () => Promise<EngineStats>): () => Promise<void> {
  const registers = [registry]
  const store = new Gauge({ name: 'broker_store_bytes', help: 'Bytes on disk.', registers })
  const channels = new Gauge({ name: 'broker_channels', help: 'Channels of users, of all types.', registers })
  const queued = new Gauge({
    name: 'broker_queue_messages',
    help: 'Messages in all queues: waiting (deliverable now), delayed, in_flight (leased).',
    labelNames: ['state'],
    registers,
  })
  const deadLettered = new Counter({
    name: 'broker_dead_lettered_total',
    help: 'Messages that this node moved to a dead-letter queue.',
    registers,
  })
  const redelivered = new Counter({
    name: 'broker_redelivered_total',
    help: 'Deliveries of queue messages, by this node, that had been delivered before.',
    registers,
  })
  const retries = new Counter({
    name: 'broker_retries_total',
    help: 'Queue messages that this node returned to their queue for another attempt.',
    registers,
  })
  const expired = new Counter({
    name: 'broker_expired_total',
    help: 'Queue messages that this node removed because they expired.',
    registers,
  })
  return async () => {
    try {
      const { storeBytes, channels: count, queues, sinceOpen } = await stats()
      store.set(storeBytes)
      channels.set(count)
      queued.set({ state: 'waiting' }, queues.waiting)
      queued.set({ state: 'delayed' }, queues.delayed)
      queued.set({ state: 'in_flight' }, queues.inFlight)
      setTotal(deadLettered, sinceOpen.deadLettered)
      setTotal(redelivered, sinceOpen.redelivered)
      setTotal(retries, sinceOpen.retried)
      setTotal(expired, sinceOpen.expired)
    } catch {}
  }
}

function setTotal(counter: Counter, total: number): void {
  counter.reset()
  counter.inc(total)
}

/** Measures the duration of the engine's commits and the writes in each. */
export function commitMetrics(registry: Registry): (operations: number, seconds: number) => void {
  const registers = [registry]
  const duration = new Histogram({
    name: 'broker_commit_duration_seconds',
    help: 'Duration of a commit of the store, including the sync to disk.',
    buckets: COMMIT_SECONDS,
    registers,
  })
  const operations = new Histogram({
    name: 'broker_commit_operations',
    help: 'Number of writes in a commit.',
    buckets: COMMIT_OPERATIONS,
    registers,
  })
  return (count, seconds) => {
    duration.observe(seconds)
    operations.observe(count)
  }
}
