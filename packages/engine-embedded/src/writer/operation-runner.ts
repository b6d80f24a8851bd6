import type Database from 'better-sqlite3'

import { ChannelOperations } from './channel-operations.ts'
import type { ChannelTable } from './channel-table.ts'
import type { LeftAlone } from './damaged.ts'
import { Deduplication } from './deduplication.ts'
import { EventsStoreOperations } from './events-store-operations.ts'
import { GroupPositions } from './group-positions.ts'
import { Maintenance } from './maintenance.ts'
import type { Operation, Result } from './operations.ts'
import type { WriterSettings } from './thread-messages.ts'
import { QueueOperations } from './queue-operations.ts'

/** Runs one operation in a transaction that the caller begins and commits. */
export class OperationRunner {
  readonly #queues: QueueOperations
  readonly #eventsStore: EventsStoreOperations
  readonly #groups: GroupPositions
  readonly #channels: ChannelOperations
  readonly #maintenance: Maintenance

  constructor(database: Database.Database, channels: ChannelTable, settings: WriterSettings, leftAlone: LeftAlone) {
    const deduplication = new Deduplication(database)
    this.#queues = new QueueOperations(database, channels, deduplication, settings, leftAlone)
    this.#eventsStore = new EventsStoreOperations(database, channels, deduplication, settings, leftAlone)
    this.#groups = new GroupPositions(database, channels, settings)
    this.#channels = new ChannelOperations(channels, this.#eventsStore)
    const parts = { eventsStore: this.#eventsStore, groups: this.#groups, deduplication }
    this.#maintenance = new Maintenance(database, channels, parts, leftAlone)
  }

  /** Returns whether the operation has nothing to write, so that a full disk need not refuse it: every start repeats it. */
  isDone(operation: Operation): boolean {
    return operation.kind === 'createChannel' && this.#channels.exists(operation)
  }

  /** Runs the operation. @throws RefusedError if it is not allowed; it has written nothing then */
  run(operation: Operation): Result {
    if (operation.kind !== 'send' && operation.kind !== 'settle') this.#queues.flush()
    switch (operation.kind) {
      case 'send':
        return this.#queues.send(operation)
      case 'append':
        return this.#eventsStore.append(operation)
      case 'settle':
        return this.#queues.settle(operation)
      case 'release':
        return this.#queues.release(operation)
      case 'promote':
        return this.#queues.promote(operation)
      case 'expireDelayed':
        return this.#queues.expireDelayed(operation)
      case 'purge':
        return this.#queues.purge(operation)
      case 'joinGroup':
        return this.#groups.join(operation)
      case 'storePositions':
        return this.#groups.store(operation)
      case 'createChannel':
        return this.#channels.create(operation)
      case 'deleteChannel':
        return this.#channels.delete(operation)
      case 'activity':
        return this.#channels.activity(operation)
      case 'sweep':
        return this.#maintenance.sweep(operation)
      default:
        return this.#maintenance.probe()
    }
  }

  /** Writes the collected rows of the operations. Call it before the commit. */
  flush(): void {
    this.#queues.flush()
  }

  /** Drops the collected rows of the operations. Call it when their transaction is rolled back. */
  discard(): void {
    this.#queues.discard()
    this.#groups.discard()
  }
}
