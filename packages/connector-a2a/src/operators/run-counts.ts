import type { AgentInbox } from '@signalbox/registry'
import { InboxError } from '@signalbox/registry'

import { phaseAfter } from '../inbox/inbox-events.ts'
import { lastEventOf } from '../runs/chunks.ts'
import type { RunChunk } from '../runs/run-log.ts'

/** The results of streams that continue with `Last-Event-ID`. */
export const REPLAY_OUTCOMES = ['complete', 'gap', 'refused'] as const
/** The results of requests with a key: it is new, that of the same request, or that of another one. */
export const KEYED_OUTCOMES = ['first', 'repeated', 'refused'] as const
/** The steps in the life of a lease. */
export const LEASE_OUTCOMES = ['granted', 'redelivered', 'answered', 'returned', 'rejected', 'lost'] as const

export type ReplayOutcome = (typeof REPLAY_OUTCOMES)[number]
export type KeyedOutcome = (typeof KEYED_OUTCOMES)[number]
export type LeaseOutcome = (typeof LEASE_OUTCOMES)[number]

/** The counts of the calls whose answers this node keeps, since its start. */
export interface RunCounts {
  /** The chunks that were written into the log. */
  readonly appends: number
  /** The events of these chunks. */
  readonly events: number
  /** The bytes of these events. */
  readonly bytes: number
  readonly replays: Readonly<Record<ReplayOutcome, number>>
  readonly keyed: Readonly<Record<KeyedOutcome, number>>
  readonly leases: Readonly<Record<LeaseOutcome, number>>
}

/** Counts the calls whose answers are kept. Other calls do not reach it. */
export class RunCounters implements RunCounts {
  appends = 0
  events = 0
  bytes = 0
  readonly replays: Record<ReplayOutcome, number> = { complete: 0, gap: 0, refused: 0 }
  readonly keyed: Record<KeyedOutcome, number> = { first: 0, repeated: 0, refused: 0 }
  readonly leases: Record<LeaseOutcome, number> = {
    granted: 0,
    redelivered: 0,
    answered: 0,
    returned: 0,
    rejected: 0,
    lost: 0,
  }

  /** Counts a chunk that was written. */
  appended(chunk: RunChunk): void {
    this.appends++
    this.events += endedEvents(chunk)
    this.bytes += chunk.body.byteLength
  }

  /** Returns inboxes that count the leases of the agents. */
  countLeases(inbox: AgentInbox): AgentInbox {
    const { leases } = this
    const settled = async <T>(call: Promise<T>, outcome: LeaseOutcome | undefined): Promise<T> => {
      try {
        const result = await call
        if (outcome !== undefined) leases[outcome]++
        return result
      } catch (error) {
        if (error instanceof InboxError && error.code === 'LEASE_LOST') leases.lost++
        throw error
      }
    }
    return {
      async lease(card, options) {
        const items = await inbox.lease(card, options)
        for (const { attempt } of items) leases[attempt === 1 ? 'granted' : 'redelivered']++
        return items
      },
      events: (card, input) => {
        const isEnd = input.events.some((event) => phaseAfter(event) !== 'open')
        return settled(inbox.events(card, input), isEnd ? 'answered' : undefined)
      },
      nack: (card, input) => settled(inbox.nack(card, input), input.reject === true ? 'rejected' : 'returned'),
      status: (card) => inbox.status(card),
    }
  }
}

/** Returns the number of events that end in a chunk. */
function endedEvents(chunk: RunChunk): number {
  if (chunk.reply !== undefined) return 1
  const before = chunk.continues ? chunk.first - 2 : chunk.first - 1
  return lastEventOf(chunk) - before
}
