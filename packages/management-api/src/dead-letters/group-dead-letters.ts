import { setImmediate as nextTurn } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { isoTime } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { Examination } from '../messages/find-messages.ts'
import { oldestFirst } from '../messages/stored-messages.ts'
import { deadLetterOf } from './dead-letter.ts'

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
