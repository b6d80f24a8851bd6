import { setImmediate as nextTurn } from 'node:timers/promises'

import { decodeText } from '@signalbox/broker-core'
import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { channelListMatcher, parseJsonText } from '@signalbox/broker-core/internal'
import { argument, parseTimestamp } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { cursorKey, cursorOf, invalidCursor, nextCursor, pageLimit, pagingParameters } from '../paging.ts'
import { AUDIT_CHANNEL, auditEntrySchema, outcomeSchema } from './audit-entry.ts'
import type { AuditEntry, AuditOutcome } from './audit-entry.ts'

const name = (description: string) => Type.Optional(Type.String({ description, minLength: 1, maxLength: 512 }))

const auditRoute = defineManagementRoute({
  name: '/api/audit',
  summary: 'The audit log: caller, action, channel or agent, and outcome; newest first.',
  input: Type.Object(
    {
      client: name('Only actions of this client.'),
      action: name('Only this action, such as purge_queue or authentication_failed.'),
      channel: name(
        'Only actions on matching channels or agents: a glob if it contains `*` or `?`, otherwise a prefix.',
      ),
      outcome: Type.Optional(outcomeSchema),
      from: Type.Optional(argument.timestamp('Only events at or after this time, ISO 8601.')),
      to: Type.Optional(argument.timestamp('Only events at or before this time, ISO 8601.')),
      ...pagingParameters,
    },
    STRICT,
  ),
  output: Type.Object({ items: Type.Array(auditEntrySchema), next_cursor: nextCursor }),
  run({ from, to, ...query }, { services }) {
    const filter = { ...query, from: milliseconds(from), to: milliseconds(to) }
    return readAudit(services.system, filter, { limit: pageLimit(query), cursor: query.cursor })
  },
})

export const auditOperations: readonly Operation[] = [auditRoute]

function milliseconds(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : parseTimestamp(timestamp)
}

interface AuditFilter {
  readonly client?: string | undefined
  readonly action?: string | undefined
  /** A pattern as of `channel_list`; it also matches agent ids. */
  readonly channel?: string | undefined
  readonly outcome?: AuditOutcome | undefined
  /** A text in the detail. */
  readonly detail?: string | undefined
  /** Both inclusive, in ms since the epoch. */
  readonly from?: number | undefined
  readonly to?: number | undefined
}

interface AuditPage {
  /** Newest first. */
  items: AuditEntry[]
  next_cursor: string | null
}

/**
 * The entries read in one step, and for one page. A filter that matches nothing must not block the
 * server.
 */
const STEP = 200
const MAX_LOOKED_AT = 20_000

/**
 * The longest time that an entry may have waited for the store, in ms: its timestamp is that much
 * later than its event.
 */
const MAX_WAITED_MS = 60 * 60_000

/**
 * Returns one page of the log, newest first. If few entries match, the page may have fewer entries
 * than the limit, or none, and still have a next page.
 * @throws ManagementError PARAMETER_INVALID
 */
export async function readAudit(
  system: BrokerHandle,
  filter: AuditFilter,
  page: { readonly limit: number; readonly cursor: string | undefined },
): Promise<AuditPage> {
  const matches = matcher(filter)
  const items: AuditEntry[] = []
  let before = page.cursor === undefined ? await newest(system, filter.to) : sequenceIn(page.cursor)
  const first = (await firstSequence(system)) ?? before
  for (let lookedAt = 0; before > first && lookedAt < MAX_LOOKED_AT; lookedAt += STEP) {
    const entries = await entriesBefore(system, before, first)
    // The remaining entries were deleted by age in the meantime.
    if (entries.length === 0) return { items, next_cursor: null }
    for (const { sequence, timestamp, ...event } of entries) {
      // Entries are stored after their event, so no older entry can match.
      if (filter.from !== undefined && timestamp < filter.from) return { items, next_cursor: null }
      before = sequence
      const entry = entryOf(event)
      if (entry === undefined || !matches(entry)) continue
      items.push(entry)
      if (items.length === page.limit) return { items, next_cursor: cursorBefore(before, first) }
    }
    await nextTurn()
  }
  return { items, next_cursor: cursorBefore(before, first) }
}

/** Newest first. */
async function entriesBefore(system: BrokerHandle, before: number, first: number): Promise<readonly StoredEvent[]> {
  const fromSequence = Math.max(first, before - STEP)
  const events = await system.eventsStore.read(AUDIT_CHANNEL, { fromSequence, maxMessages: before - fromSequence })
  return events.filter(({ sequence }) => sequence < before).toReversed()
}

async function firstSequence(system: BrokerHandle): Promise<number | undefined> {
  const [first] = await system.eventsStore.read(AUDIT_CHANNEL, { maxMessages: 1 })
  return first?.sequence
}

/** Returns the sequence after the newest one that can match. */
async function newest(system: BrokerHandle, to: number | undefined): Promise<number> {
  if (to !== undefined) {
    const fromTimestamp = to + MAX_WAITED_MS
    const [later] = await system.eventsStore.read(AUDIT_CHANNEL, { fromTimestamp, maxMessages: 1 })
    if (later) return later.sequence
  }
  const [last] = await system.eventsStore.readLatest(AUDIT_CHANNEL, { maxMessages: 1 })
  return (last?.sequence ?? 0) + 1
}

function matcher(filter: AuditFilter): (entry: AuditEntry) => boolean {
  const { client, action, detail, outcome, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = filter
  const named = filter.channel === undefined ? undefined : channelListMatcher(filter.channel)
  return (entry) => {
    const time = Date.parse(entry.time)
    return (
      time >= from &&
      time <= to &&
      (client === undefined || entry.client === client) &&
      (action === undefined || entry.action === action) &&
      (outcome === undefined || entry.outcome === outcome) &&
      (detail === undefined || entry.detail?.includes(detail) === true) &&
      (named === undefined || named(entry.channel ?? entry.agent ?? ''))
    )
  }
}

function entryOf({ body }: Pick<StoredEvent, 'body'>): AuditEntry | undefined {
  try {
    const entry = parseJsonText(decodeText(body) ?? '')
    return Check(auditEntrySchema, entry) ? entry : undefined
  } catch {
    return undefined
  }
}

function cursorBefore(sequence: number, first: number): string | null {
  return sequence > first ? cursorOf(`before ${sequence}`) : null
}

function sequenceIn(cursor: string): number {
  const [, digits] = /^before (\d{1,15})$/.exec(cursorKey(cursor)) ?? []
  if (digits === undefined) throw invalidCursor()
  return Number(digits)
}
