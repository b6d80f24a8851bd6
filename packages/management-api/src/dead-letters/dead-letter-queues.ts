import type { BrokerHandle, ChannelInfo } from '@signalbox/broker-core'
import { inTurns } from '@signalbox/broker-core/internal'
import { isoTime } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import type { ChannelIndex } from '../channels/channel-index.ts'
import { FirstInOrder } from '../channels/first-in-order.ts'
import { cursorKey, cursorOf, nextCursor } from '../paging.ts'
import { deadLetterOf } from './dead-letter.ts'

/** The bounds of one request: queues looked at, queues listed, and the time, in ms. */
export const MAX_QUEUES = 2_000
export const MAX_LISTED_QUEUES = 100
const MAX_MS = 3_000

/** The messages that show whether a queue holds dead letters, and about their bytes. */
export const PROBED = 4
const PROBED_BYTES = 16 * 1024

/** The messages whose sources are counted, and about their bytes. */
const SAMPLED = 200
const SAMPLED_BYTES = 512 * 1024

/** The queues that are looked at together. */
const TOGETHER = 16

const deadLetterQueue = Type.Object({
  channel: Type.String(),
  waiting: Type.Integer({ minimum: 0, description: 'The messages in the queue that can be received.' }),
  in_flight: Type.Integer({ minimum: 0, description: 'Leased messages, such as those of a redrive that runs.' }),
  oldest: Type.String({ description: 'The time of acceptance of the first dead letter, ISO 8601.' }),
  sources: Type.Array(Type.Object({ source: Type.String(), count: Type.Integer({ minimum: 1 }) }), {
    description: `The queues that the first ${SAMPLED} messages came from, with their number. The largest number first.`,
  }),
  examined: Type.Integer({ minimum: 1, description: `The number of messages looked at for the sources.` }),
})

export const deadLetterQueues = Type.Object({
  items: Type.Array(deadLetterQueue, { description: 'By name.' }),
  next_cursor: nextCursor,
  examined: Type.Integer({ minimum: 0, description: 'The number of queues looked at.' }),
  as_of: Type.String({ description: 'The time of the numbers of messages, ISO 8601.' }),
  complete: Type.Boolean({ description: 'False if not all channels were read yet: ask again.' }),
})

type DeadLetterQueue = Static<typeof deadLetterQueue>

/**
 * Finds the queues that hold dead letters, by their first messages. Engines do not index dead letters,
 * so one request looks at a bounded number of queues that are not empty.
 * @throws ManagementError PARAMETER_INVALID for a cursor of another route
 */
export async function findDeadLetterQueues(
  broker: BrokerHandle,
  index: ChannelIndex,
  cursor: string | undefined,
): Promise<Static<typeof deadLetterQueues>> {
  const after = cursor === undefined ? '' : cursorKey(cursor)
  const until = performance.now() + MAX_MS
  const { channels, asOf, complete } = await index.read(broker)
  // One more than is looked at, which shows that there are more.
  const candidates = new FirstInOrder<ChannelInfo>(MAX_QUEUES + 1, (a, b) => (a.name < b.name ? -1 : 1))
  await inTurns(channels, (channel) => {
    if (channel.type === 'queues' && channel.name > after && (channel.queue?.waiting ?? 0) > 0) candidates.add(channel)
  })
  const queues = candidates.list()
  const items: DeadLetterQueue[] = []
  let examined = 0
  while (examined < Math.min(queues.length, MAX_QUEUES)) {
    const some = queues.slice(examined, Math.min(examined + TOGETHER, MAX_QUEUES))
    const found = await Promise.all(some.map((queue) => deadLettersOf(broker, queue)))
    examined += some.length
    items.push(...found.filter((each) => each !== undefined))
    if (items.length > MAX_LISTED_QUEUES - TOGETHER || performance.now() > until) break
  }
  const last = queues[examined - 1]
  const more = last !== undefined && examined < queues.length
  return { items, next_cursor: more ? cursorOf(last.name) : null, examined, as_of: isoTime(asOf), complete }
}

/** Returns undefined if no dead letter is among the first messages. */
async function deadLettersOf(
  { queues }: BrokerHandle,
  { name: channel, queue }: ChannelInfo,
): Promise<DeadLetterQueue | undefined> {
  const first = await queues.peek(channel, { maxMessages: PROBED, maxBytes: PROBED_BYTES })
  if (!first.some((message) => deadLetterOf(message) !== undefined)) return undefined
  const sample = await queues.peek(channel, { maxMessages: SAMPLED, maxBytes: SAMPLED_BYTES })
  const bySource = new Map<string, number>()
  let oldest: number | undefined
  for (const message of sample) {
    const letter = deadLetterOf(message)
    if (letter === undefined) continue
    oldest ??= message.timestamp
    bySource.set(letter.source, (bySource.get(letter.source) ?? 0) + 1)
  }
  // Another receiver took them.
  if (oldest === undefined) return undefined
  const sources = [...bySource].map(([source, count]) => ({ source, count }))
  return {
    channel,
    waiting: queue?.waiting ?? 0,
    in_flight: queue?.inFlight ?? 0,
    oldest: isoTime(oldest),
    sources: sources.toSorted((a, b) => b.count - a.count),
    examined: sample.length,
  }
}
