import { setImmediate as nextTurn } from 'node:timers/promises'

import type { BrokerHandle, ChannelInfo } from '@signalbox/broker-core'
import { inTurns } from '@signalbox/broker-core/internal'
import { isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import type { ChannelIndex } from '../channels/channel-index.ts'
import { FirstInOrder } from '../channels/search-channels.ts'
import { Examination } from '../messages/find-messages.ts'
import { oldestFirst } from '../messages/stored-messages.ts'
import { cursorKey, cursorOf, nextCursor } from '../paging.ts'
import { deadLetterOf } from './redrive.ts'

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

/** The most groups of one answer. */
export const MAX_GROUPS = 100

/** The ids that a group shows. */
const MAX_IDS = 10

const deadLetterGroup = Type.Object({
  source: Type.String({ description: 'The queue that the messages came from.' }),
  reason: Type.String({ description: 'The reason for which they moved, such as max_receive_count.' }),
  count: Type.Integer({ minimum: 1 }),
  oldest: Type.String({ description: 'The time of acceptance of the oldest message, ISO 8601.' }),
  newest: Type.String({ description: 'The time of acceptance of the newest message, ISO 8601.' }),
  ids: Type.Array(Type.String(), { description: `The ids of the first ${MAX_IDS} messages.` }),
})

export const deadLetterGroups = Type.Object({
  channel: Type.String(),
  groups: Type.Array(deadLetterGroup, { description: 'The largest group first.' }),
  others: Type.Integer({ minimum: 0, description: 'Messages that are not dead letters, or of further groups.' }),
  examined: Type.Integer({ minimum: 0, description: 'The number of messages looked at.' }),
  next_sequence: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
    description: '`from_sequence` of the next request; null if the whole queue was looked at.',
  }),
})

interface Group {
  readonly source: string
  readonly reason: string
  count: number
  oldest: number
  newest: number
  readonly ids: string[]
}

/** Counts the dead letters of a queue by source and reason, in a bounded number of messages. */
export async function groupDeadLetters(
  broker: BrokerHandle,
  channel: string,
  fromSequence?: number,
): Promise<Static<typeof deadLetterGroups>> {
  const groups = new Map<string, Group>()
  const examination = new Examination()
  let others = 0
  const answer = (next: number | null) => ({
    channel,
    groups: [...groups.values()]
      .toSorted((a, b) => b.count - a.count)
      .map(({ source, reason, count, ids, oldest, newest }) => ({
        source,
        reason,
        count,
        oldest: isoTime(oldest),
        newest: isoTime(newest),
        ids,
      })),
    others,
    examined: examination.count,
    next_sequence: next,
  })
  for await (const batch of oldestFirst(broker, { type: 'queues', channel }, { fromSequence })) {
    for (const message of batch) {
      if (examination.isOver) return answer(message.sequence)
      examination.add(message)
      const letter = 'receiveCount' in message ? deadLetterOf(message) : undefined
      if (letter === undefined || !add(groups, letter, message)) others++
    }
    await nextTurn()
  }
  return answer(null)
}

/** Returns false if the message would begin a group too many. */
function add(
  groups: Map<string, Group>,
  { source, reason }: { readonly source: string; readonly reason: string },
  { id, timestamp }: { readonly id: string; readonly timestamp: number },
): boolean {
  const key = JSON.stringify([source, reason])
  const group = groups.get(key)
  if (group === undefined) {
    if (groups.size === MAX_GROUPS) return false
    groups.set(key, { source, reason, count: 1, oldest: timestamp, newest: timestamp, ids: [id] })
    return true
  }
  group.count++
  group.oldest = Math.min(group.oldest, timestamp)
  group.newest = Math.max(group.newest, timestamp)
  if (group.ids.length < MAX_IDS) group.ids.push(id)
  return true
}
