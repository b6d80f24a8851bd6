import { groupOf } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { KEY, LAST_SEQUENCE, parseTags, SEQUENCE } from '../store/message-rows.ts'
import {
  GROUPS_BUILDING,
  GROUPS_COMPLETE,
  GROUPS_DROPPING,
  GROUPS_VERSION,
  QUEUE_GROUPS_TABLES,
} from '../store/schema.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { ChannelTable } from './channel-table.ts'
import type { GroupQueueOperation, GroupQueueOperationResult } from './operations.ts'
import { touching } from './refusals.ts'

interface GroupedQueue {
  readonly channel: number
  readonly state: number
  readonly indexedTo: number
}

type MessageRow = readonly [sequence: number, tags: string]

interface Statements {
  readonly insert: Database.Statement<[number, string, number]>
  readonly remove: Database.Statement<[number, string, number]>
  readonly removeSome: Database.Statement<[number, number]>
  readonly messages: Database.Statement<[number, number, number, number, number], MessageRow>
  readonly store: Database.Statement<[number, number, number]>
  readonly forget: Database.Statement<[number]>
}

/**
 * The writer's index of groups. `queue_groups` has a row for each deliverable or leased message of the queues in
 * `grouped_queues`, and does not depend on the settings: a program that starts has none yet. Other queues
 * have no rows, and cost one look into an empty map.
 */
export class QueueGroups {
  readonly #database: Database.Database
  readonly #channels: ChannelTable
  readonly #hasTables
  #statements: Statements | undefined
  #queues = new Map<number, GroupedQueue>()
  #newVersion = false

  constructor(database: Database.Database, channels: ChannelTable) {
    this.#database = database
    this.#channels = channels
    this.#hasTables = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'grouped_queues'")
    this.#load()
  }

  #load(): void {
    this.#queues = new Map()
    this.#statements = this.#hasTables.get() === undefined ? undefined : prepare(this.#database)
    if (!this.#statements) return
    const stored = this.#database.prepare<[], GroupedQueue>(
      'SELECT channel, state, indexed_to AS indexedTo FROM grouped_queues',
    )
    for (const queue of stored.all()) this.#queues.set(queue.channel, queue)
  }

  /** Reads the state again after a rollback. */
  discard(): void {
    this.#newVersion = false
    this.#load()
  }

  /** Returns whether the queue's messages have rows. */
  has(channelId: number): boolean {
    return this.#queues.size > 0 && (this.#queues.get(channelId)?.state ?? GROUPS_DROPPING) !== GROUPS_DROPPING
  }

  /** Adds the row of a message. @throws DamagedRowError */
  add(channelId: number, sequence: number, tags: string): void {
    this.#statements?.insert.run(channelId, groupOf(parseTags(tags)), sequence)
  }

  /** Removes the row of a message. @throws DamagedRowError */
  remove(channelId: number, sequence: number, tags: string): void {
    this.#statements?.remove.run(channelId, groupOf(parseTags(tags)), sequence)
  }

  isDone({ channelId, grouped }: GroupQueueOperation): boolean {
    const state = this.#queues.get(channelId)?.state
    return grouped ? state === GROUPS_COMPLETE : state === undefined
  }

  step(operation: GroupQueueOperation): GroupQueueOperationResult {
    const channel = this.#channels.get('queues', operation.channel)
    if (channel?.id !== operation.channelId || this.isDone(operation)) return { kind: 'groupQueue', more: false }
    if (!this.#statements) {
      this.#createTables(channel)
      return { kind: 'groupQueue', more: true }
    }
    touching(channel, () => this.#step(channel, operation))
    return { kind: 'groupQueue', more: !this.isDone(operation) }
  }

  /** Creates the tables. The messages follow in later steps, when older programs refuse the store. */
  #createTables({ id }: StoredChannel): void {
    this.#database.exec(QUEUE_GROUPS_TABLES)
    this.#database.pragma(`user_version = ${GROUPS_VERSION}`)
    this.#load()
    this.#store(id, GROUPS_BUILDING, 0)
    this.#newVersion = true
  }

  /** Returns, once, that the store has a new version, which must reach the data file. */
  takeNewVersion(): boolean {
    const isNew = this.#newVersion
    this.#newVersion = false
    return isNew
  }

  #step({ id }: StoredChannel, { grouped, limit }: GroupQueueOperation): void {
    const queue = this.#queues.get(id)
    if (grouped && queue?.state !== GROUPS_DROPPING) {
      this.#index(id, queue?.indexedTo ?? 0, limit)
      return
    }
    // Groups that are wanted again while their rows are removed: the removal comes first.
    if (queue?.state !== GROUPS_DROPPING) this.#store(id, GROUPS_DROPPING, 0)
    this.forget(id, limit)
  }

  #index(id: number, indexedTo: number, limit: number): void {
    const rows = this.#statements?.messages.all(id, indexedTo, id, LAST_SEQUENCE, limit) ?? []
    for (const [sequence, tags] of rows) this.add(id, sequence, tags)
    this.#store(id, rows.length < limit ? GROUPS_COMPLETE : GROUPS_BUILDING, rows.at(-1)?.[0] ?? indexedTo)
  }

  #store(channel: number, state: number, indexedTo: number): void {
    this.#statements?.store.run(channel, state, indexedTo)
    this.#queues.set(channel, { channel, state, indexedTo })
  }

  /** Removes up to `limit` rows of a queue, and after the last one the queue itself; returns the number of rows. */
  forget(channelId: number, limit: number): number {
    const removed = this.#statements?.removeSome.run(channelId, limit).changes ?? 0
    if (removed < limit && this.#queues.delete(channelId)) this.#statements?.forget.run(channelId)
    return removed
  }
}

function prepare(database: Database.Database): Statements {
  return {
    // A message that arrives while the queue is indexed has its row already.
    insert: database.prepare('INSERT OR IGNORE INTO queue_groups (channel, grp, sequence) VALUES (?, ?, ?)'),
    remove: database.prepare('DELETE FROM queue_groups WHERE channel = ? AND grp = ? AND sequence = ?'),
    removeSome: database.prepare(`
      DELETE FROM queue_groups WHERE (channel, grp, sequence) IN (
        SELECT channel, grp, sequence FROM queue_groups WHERE channel = ? LIMIT ?)`),
    messages: database
      .prepare<[number, number, number, number, number], MessageRow>(
        `SELECT ${SEQUENCE}, tags FROM queue_messages WHERE key > ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?`,
      )
      .raw(),
    store: database.prepare('INSERT OR REPLACE INTO grouped_queues (channel, state, indexed_to) VALUES (?, ?, ?)'),
    forget: database.prepare('DELETE FROM grouped_queues WHERE channel = ?'),
  }
}
