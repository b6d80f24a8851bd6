import type { BrokerHandle } from '@signalbox/broker-core'
import { messageSizeInJson } from '@signalbox/http-kit/internal'

import type { Occurrence } from '../wire/events-profile.ts'
import { cursorOf, EventLog, positionAfter } from './event-log.ts'
import type { SelectedEvents } from './event-selection.ts'
import { startOf } from './event-selection.ts'
import { occurrenceOf } from './event-types.ts'

/** The most events of one poll, and the number without `maxEvents`. */
const MOST_EVENTS = 100
const USUAL_EVENTS = 50

/** The size of the messages of one poll in JSON after which no further one is added, in bytes. */
const POLL_BYTES = 1024 * 1024

/** The interval at which clients should poll, in ms. */
const NEXT_POLL_MS = 5_000

/** The result of a poll. */
export interface PollResult {
  readonly events: readonly Occurrence[]
  readonly cursor: string
  readonly truncated: boolean
  readonly hasMore: boolean
  readonly nextPollMs: number
}

interface PollInput {
  readonly cursor?: string
  readonly maxAgeMs?: number
  readonly maxEvents?: number
}

/** Returns the events after a cursor; without a cursor none, and the cursor of the end. */
export async function pollEvents(
  { type, channel }: SelectedEvents,
  input: PollInput,
  { broker, system }: { readonly broker: BrokerHandle; readonly system: BrokerHandle },
): Promise<PollResult> {
  const log = new EventLog(system, channel)
  const { position, truncated } = await startOf(log, channel, input)
  const most = Math.min(input.maxEvents ?? USUAL_EVENTS, MOST_EVENTS)
  const entries =
    input.cursor === undefined
      ? []
      : await broker.eventsStore.read(channel, {
          fromSequence: position.next,
          maxMessages: most,
          maxBytes: POLL_BYTES,
          sizeOf: messageSizeInJson,
        })
  const events: Occurrence[] = []
  for (const entry of entries) {
    // A deleted key has no message.
    if (entry.tombstone) continue
    const occurrence = occurrenceOf(type, entry, cursorOf(channel, positionAfter(entry)))
    if (occurrence !== undefined) events.push(occurrence)
  }
  const last = entries.at(-1)
  const hasMore = last !== undefined && last.sequence < (await log.lastSequence())
  return {
    events,
    cursor: cursorOf(channel, last === undefined ? position : positionAfter(last)),
    truncated,
    hasMore,
    nextPollMs: hasMore ? 0 : NEXT_POLL_MS,
  }
}
