import type { BrokerHandle } from './broker.ts'
import type { StoredEvent } from './message.ts'

/** The most entries, and about the most bytes, in one page of the history. */
const PAGE = 1_000
const PAGE_BYTES = 4 * 1024 * 1024

/**
 * Creates an events store that keeps the last entry of each key, if it does not exist. Retention by age or size, which
 * other channels may have, would lose entries.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function createCompactedLog(system: BrokerHandle, channel: string): Promise<void> {
  await system.channels.create('events_store', channel, { compacted: true, maxAgeMs: 0, maxBytes: 0 })
}

/**
 * Reads every entry of an events store in pages, in the order of the log. Resolves with the sequence after the last
 * one, from which a subscription continues.
 * @throws BrokerError ENGINE_UNAVAILABLE; the reason of the signal
 */
export async function readWholeLog(
  system: BrokerHandle,
  channel: string,
  each: (entry: StoredEvent) => void,
  signal?: AbortSignal,
): Promise<number> {
  let next = 1
  for (;;) {
    const page = await system.eventsStore.read(channel, {
      fromSequence: next,
      maxMessages: PAGE,
      maxBytes: PAGE_BYTES,
    })
    signal?.throwIfAborted()
    for (const event of page) {
      next = event.sequence + 1
      each(event)
    }
    if (page.length === 0) return next
  }
}
