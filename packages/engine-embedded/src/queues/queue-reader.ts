import { groupOf } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import type { LiveChannel } from '../channel-registry.ts'
import { DELAYED, EXPIRY } from '../store/damage.ts'
import type { QueuedMessage, ReadRow } from '../store/message-rows.ts'
import { CHANNEL, KEY, parseTags, READ_COLUMNS, readMessage, SEQUENCE } from '../store/message-rows.ts'
import { GROUPS_COMPLETE } from '../store/schema.ts'
import type { Store } from '../store/store.ts'

/** The maximum size of a body that is read with its page, in bytes; larger ones are read at delivery. */
export const SMALL_BYTES = 16 * 1024

const SMALL_BODY = `CASE WHEN size <= ${SMALL_BYTES} THEN body END`

/** The first message of a group. */
export type GroupRow = readonly [group: string, sequence: number]

interface GroupStatements {
  readonly first: Database.Statement<[number, number], GroupRow>
  readonly next: Database.Statement<[number, string, number], GroupRow>
  readonly within: Database.Statement<[number, string, number, number], readonly [sequence: number]>
  readonly tags: Database.Statement<[number, number], readonly [tags: string]>
}

/** Only for stores with the tables of groups. */
function prepareGroups(connection: Database.Database): GroupStatements {
  const groups = 'SELECT grp, sequence FROM queue_groups WHERE channel = ?'
  const first = 'AND sequence <= ? ORDER BY grp, sequence LIMIT 1'
  return {
    first: connection.prepare<[number, number], GroupRow>(`${groups} ${first}`).raw(),
    next: connection.prepare<[number, string, number], GroupRow>(`${groups} AND grp > ? ${first}`).raw(),
    within: connection
      .prepare<[number, string, number, number], readonly [sequence: number]>(
        `SELECT sequence FROM queue_groups
         WHERE channel = ? AND grp = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT 1`,
      )
      .raw(),
    tags: connection
      .prepare<[number, number], readonly [tags: string]>(`SELECT tags FROM queue_messages WHERE key = ${KEY}`)
      .raw(),
  }
}

type TimeRow = readonly [sequence: number, timestamp: number, expiresAt: number]

interface Statements {
  readonly page: Database.Statement<[number, number, number, number, number], ReadRow>
  readonly one: Database.Statement<[number, number], ReadRow>
  readonly times: Database.Statement<[number, number, number, number, number], TimeRow>
  readonly expired: Database.Statement<[number, number, number], { channel: number; sequence: number }>
  readonly nextDue: Database.Statement<[], { due: number | null }>
  readonly expiring: Database.Statement<[], { count: number }>
}

function prepare(connection: Database.Database): Statements {
  return {
    page: connection
      .prepare<[number, number, number, number, number], ReadRow>(
        `SELECT ${READ_COLUMNS}, ${SMALL_BODY} FROM queue_messages WHERE key > ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?`,
      )
      .raw(),
    one: connection
      .prepare<[number, number], ReadRow>(`SELECT ${READ_COLUMNS}, body FROM queue_messages WHERE key = ${KEY}`)
      .raw(),
    times: connection
      .prepare<[number, number, number, number, number], TimeRow>(
        `SELECT ${SEQUENCE}, timestamp, expires_at FROM queue_messages WHERE key > ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?`,
      )
      .raw(),
    expired: connection.prepare(`
      SELECT ${CHANNEL} AS channel, ${SEQUENCE} AS sequence FROM queue_messages
      WHERE expires_at > 0 AND expires_at <= ? ORDER BY expires_at, key LIMIT ? OFFSET ?`),
    nextDue: connection.prepare('SELECT min(due_at) AS due FROM delayed_messages'),
    expiring: connection.prepare(`
      SELECT EXISTS (SELECT 1 FROM queue_messages WHERE expires_at > 0)
        + EXISTS (SELECT 1 FROM delayed_messages WHERE expires_at > 0) AS count`),
  }
}

/** Reads queue messages on the main thread. Each call runs one statement to its end. */
export class QueueReader {
  readonly #store: Store
  readonly #prepared: () => Statements
  readonly #groups: () => GroupStatements

  constructor(store: Store) {
    this.#store = store
    this.#prepared = store.statements(prepare)
    this.#groups = store.statements(prepareGroups)
  }

  /**
   * Returns the messages after a sequence, in order, without the message if its body is large. Rows after the queue's
   * last known sequence are written, but not synced yet.
   */
  page({ id, name, lastSequence }: LiveChannel, after: number, limit: number): QueuedMessage[] {
    return this.#store.reading('queues', name, () => {
      const entries: QueuedMessage[] = []
      for (const row of this.#prepared().page.all(id, after, id, lastSequence, limit))
        entries.push(readMessage(row, name))
      return entries
    })
  }

  /** Returns the sequence, the time and the expiry of the messages after a sequence, in order. */
  times({ id, name, lastSequence }: LiveChannel, after: number, limit: number): readonly TimeRow[] {
    return this.#store.reading('queues', name, () => this.#prepared().times.all(id, after, id, lastSequence, limit))
  }

  /** Returns one message of any size; undefined if it does not exist. */
  one(channelId: number, channel: string, sequence: number): QueuedMessage | undefined {
    return this.#store.reading('queues', channel, () => {
      const row = this.#prepared().one.get(channelId, sequence)
      return row && readMessage(row, channel)
    })
  }

  /** Returns the first group after another one, or the first of all, in the order of their UTF-8 bytes. */
  nextGroup({ id, name, lastSequence }: LiveChannel, after: string | undefined): GroupRow | undefined {
    return this.#store.reading('queues', name, () => {
      const { first, next } = this.#groups()
      return after === undefined ? first.get(id, lastSequence) : next.get(id, after, lastSequence)
    })
  }

  /** Returns the sequence of a group's first message after a sequence. */
  nextOfGroup({ id, name, lastSequence }: LiveChannel, group: string, after: number): number | undefined {
    return this.#store.reading('queues', name, () => this.#groups().within.get(id, group, after, lastSequence)?.[0])
  }

  /** Returns the group of a stored message; undefined if the message does not exist. */
  groupOfMessage({ id, name }: LiveChannel, sequence: number): string | undefined {
    return this.#store.reading('queues', name, () => {
      const row = this.#groups().tags.get(id, sequence)
      return row && groupOf(parseTags(row[0]))
    })
  }

  /** Returns the ids of the queues with groups on disk: `true` if each message has its group. */
  groupedQueues(): Map<number, boolean> {
    const { reader } = this.#store
    const table = reader.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'grouped_queues'")
    if (!table.get()) return new Map()
    const rows = reader.prepare<[], { id: number; complete: number }>(
      `SELECT channel AS id, state = ${GROUPS_COMPLETE} AS complete FROM grouped_queues`,
    )
    return new Map(rows.all().map(({ id, complete }) => [id, complete === 1]))
  }

  exists(channelId: number, channel: string, sequence: number): boolean {
    return this.#store.reading('queues', channel, () => this.#prepared().one.get(channelId, sequence)) !== undefined
  }

  /** Returns the expired messages in the order of their expiry, by their channels' ids. */
  expired(now: number, limit: number, skip: number): { channel: number; sequence: number }[] {
    return this.#store.readingPart(EXPIRY, () => this.#prepared().expired.all(now, limit, skip))
  }

  /** Returns whether any message has an expiry. */
  anyExpiring(): boolean {
    return this.#store.readingPart(EXPIRY, () => (this.#prepared().expiring.get()?.count ?? 0) > 0)
  }

  /** Returns the due time of the next delayed message; undefined if there is none. */
  nextDue(): number | undefined {
    return this.#store.readingPart(DELAYED, () => this.#prepared().nextDue.get()?.due ?? undefined)
  }
}
