import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

/** Returns the sequence from which an events store is delivered. */
export async function firstSequence(
  system: BrokerHandle,
  channel: string,
  start: 'new' | 'first' | number,
): Promise<number> {
  if (typeof start === 'number') return start
  if (start === 'first') return 1
  const [latest] = await system.eventsStore.readLatest(channel, { maxMessages: 1 })
  if (latest !== undefined) return latest.sequence + 1
  try {
    const { eventsStore } = await system.channels.info('events_store', channel)
    return (eventsStore?.lastSequence ?? 0) + 1
  } catch (error) {
    if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return 1
    throw error
  }
}
