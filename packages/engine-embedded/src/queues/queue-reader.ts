import type Database from 'better-sqlite3'

import type { LiveChannel } from '../channel-registry.ts'
import { DELAYED, EXPIRY } from '../store/damage.ts'
import type { QueuedMessage, ReadRow } from '../store/message-rows.ts'
import { CHANNEL, KEY, READ_COLUMNS, readMessage, SEQUENCE } from '../store/message-rows.ts'
import type { Store } from '../store/store.ts'

/** The maximum size of a body that is read with its page, in bytes; larger ones are read at delivery. */
export const SMALL_BYTES = 16 * 1024

const SMALL_BODY = `CASE WHEN size <= ${SMALL_BYTES} THEN body END`

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

  constructor(store: Store) {
    this.#store = store
    this.#prepared = store.statements(prepare)
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
