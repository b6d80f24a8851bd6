import type { Store } from '../store/store.ts'
import type { Queue } from './queue.ts'

/** The number of messages that one operation removes: about 10 ms of work, after which other operations run. */
const STEP = 5_000

/**
 * Removes the messages of a queue up to a sequence, except leased ones; resolves with the number of removed messages.
 */
export async function purgeQueue(store: Store, queue: Queue, channelId: number, upTo: number): Promise<number> {
  // Delayed messages first: one that becomes due meanwhile is then removed with the others.
  const removed = await purgeRows(store, queue, channelId, upTo, true)
  return removed + (await purgeRows(store, queue, channelId, upTo, false))
}

async function purgeRows(
  store: Store,
  queue: Queue,
  channelId: number,
  upTo: number,
  delayed: boolean,
): Promise<number> {
  let removed = 0
  for (let after: number | undefined = 0; after !== undefined;) {
    const except = delayed ? [] : queue.heldSequences()
    const channel = queue.name
    const operation = { kind: 'purge', channel, channelId, delayed, after, upTo, limit: STEP, except } as const
    const step: { removed: number; next: number | undefined } = await store.submit(
      'purge',
      operation,
      0,
      (result) => result,
    )
    removed += step.removed
    after = step.next
  }
  return removed
}
