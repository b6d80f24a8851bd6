import type Database from 'better-sqlite3'
import { Buffer } from 'node:buffer'

import { DEDUPLICATION, DELETED, GROUP_POSITIONS, TOMBSTONES } from '../store/damage.ts'
import { KEY, LAST_SEQUENCE } from '../store/message-rows.ts'
import type { ChannelTable } from './channel-table.ts'
import type { Deduplication } from './deduplication.ts'
import type { EventsStoreOperations, GroupPositions } from './events-store-operations.ts'
import type { ProbeOperationResult, SweepOperation, SweepOperationResult } from './operations.ts'
import type { QueueGroups } from './queue-groups.ts'
import type { SkippedChannels } from './refusals.ts'
import { touchingPart } from './refusals.ts'

/** The number of rows of deleted channels removed in one step: about 10 ms of work. */
const GARBAGE_STEP = 2_000
const DEDUPLICATION_STEP = 5_000

/** More than a page, so that a successful probe predicts the success of the next message. */
const PROBE = Buffer.alloc(64 * 1024)

/** The parts of the store with periodic work. */
interface MaintainedParts {
  readonly eventsStore: EventsStoreOperations
  readonly groups: GroupPositions
  readonly queueGroups: QueueGroups
  readonly deduplication: Deduplication
}

/** The writer's periodic work, in bounded steps. */
export class Maintenance {
  readonly #channels: ChannelTable
  readonly #eventsStore: EventsStoreOperations
  readonly #groups: GroupPositions
  readonly #deduplication: Deduplication
  readonly #skipped: SkippedChannels
  readonly #firstGarbage
  readonly #deleteRows
  readonly #forgetGarbage
  readonly #writeProbe
  readonly #clearProbe

  constructor(
    database: Database.Database,
    channels: ChannelTable,
    { eventsStore, groups, queueGroups, deduplication }: MaintainedParts,
    skipped: SkippedChannels,
  ) {
    this.#skipped = skipped
    this.#channels = channels
    this.#eventsStore = eventsStore
    this.#groups = groups
    this.#deduplication = deduplication
    this.#firstGarbage = database.prepare<[string], { channel: number }>(
      'SELECT channel FROM garbage WHERE channel NOT IN (SELECT value FROM json_each(?)) LIMIT 1',
    )
    const ranges = ['queue_messages', 'delayed_messages', 'log_entries'].map((table) =>
      database.prepare<[number, number, number, number, number]>(`
        DELETE FROM ${table} WHERE key IN
          (SELECT key FROM ${table} WHERE key >= ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?)`),
    )
    const byChannel = ['log_keys', 'deduplication'].map((table) => {
      const key = table === 'log_keys' ? 'log_key' : 'deduplication_id'
      return database.prepare<[number, number]>(`
        DELETE FROM ${table} WHERE (channel, ${key}) IN (SELECT channel, ${key} FROM ${table} WHERE channel = ? LIMIT ?)`)
    })
    this.#deleteRows = [
      ...ranges.map((statement) => (id: number) => statement.run(id, 0, id, LAST_SEQUENCE, GARBAGE_STEP).changes),
      ...byChannel.map((statement) => (id: number) => statement.run(id, GARBAGE_STEP).changes),
      (id: number) => groups.forget(id, GARBAGE_STEP),
      (id: number) => queueGroups.forget(id, GARBAGE_STEP),
    ]
    this.#forgetGarbage = database.prepare<[number]>('DELETE FROM garbage WHERE channel = ?')
    this.#writeProbe = database.prepare<[Buffer]>('INSERT INTO probe (filling) VALUES (?)')
    this.#clearProbe = database.prepare<[]>('DELETE FROM probe')
  }

  sweep({ now }: SweepOperation): SweepOperationResult {
    const entries = this.#eventsStore.sweep(now)
    const tombstones = this.#part(TOMBSTONES, () => this.#eventsStore.sweepTombstones(now))
    const ids = this.#part(DEDUPLICATION, () =>
      this.#deduplication.forgetOld(now, DEDUPLICATION_STEP, () => this.#channels.stored()),
    )
    const groups = this.#part(GROUP_POSITIONS, () => this.#groups.forgetUnused(now))
    const garbage = this.#part(DELETED, () => this.#collectGarbage())
    return { kind: 'sweep', more: entries || tombstones || ids || groups || garbage }
  }

  #part(part: string, work: () => boolean): boolean {
    return !this.#skipped.hasPart(part) && touchingPart(part, undefined, work)
  }

  #collectGarbage(): boolean {
    const id = this.#firstGarbage.get(this.#skipped.ids)?.channel
    if (id === undefined) return false
    const removed = touchingPart(DELETED, id, () => this.#deleteRows.some((remove) => remove(id) > 0))
    if (removed) return true
    this.#forgetGarbage.run(id)
    this.#channels.release(id)
    return true
  }

  probe(): ProbeOperationResult {
    this.#writeProbe.run(PROBE)
    this.#clearProbe.run()
    return { kind: 'probe' }
  }
}
