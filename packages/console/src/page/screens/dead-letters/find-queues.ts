import { get } from '../../api/client.ts'

/** A queue that holds dead letters. */
export interface DeadLetterQueue {
  readonly name: string
  readonly waiting: number
}

/** Queues that are looked at, the deepest first. */
const MAX_QUEUES = 60
/** Requests at the same time. */
const AT_ONCE = 6

/**
 * Finds queues that hold dead letters: their first message names the queue that it came from. The API
 * has no list of them, so only the deepest queues are looked at.
 */
export async function findDeadLetterQueues(signal: AbortSignal): Promise<readonly DeadLetterQueue[]> {
  const { items } = await get(
    '/api/channels',
    { type: 'queues', sort: 'depth', order: 'desc', limit: MAX_QUEUES },
    signal,
  )
  const waiting = items.filter(({ depth }) => depth !== null && depth > 0)
  const found: DeadLetterQueue[] = []
  for (let start = 0; start < waiting.length; start += AT_ONCE) {
    const queues = waiting.slice(start, start + AT_ONCE).map(async ({ name, depth }) => {
      const query = { type: 'queues', channel: name, limit: 1, max_body_size: 0 } as const
      // A queue may be deleted meanwhile, or forbidden.
      const first = await get('/api/messages', query, signal).catch(() => undefined)
      if (first?.items[0]?.tags['dlq_source'] !== undefined) found.push({ name, waiting: depth ?? 0 })
    })
    await Promise.all(queues)
  }
  return found.toSorted((a, b) => b.waiting - a.waiting)
}
