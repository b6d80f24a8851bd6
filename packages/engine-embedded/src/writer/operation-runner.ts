import type Database from 'better-sqlite3'

import { ChannelOperations } from './channel-operations.ts'
import type { ChannelTable } from './channel-table.ts'
import type { LeftAlone } from './damaged.ts'
import { Deduplication } from './deduplication.ts'
import { EventsStoreOperations } from './events-store-operations.ts'
import { Maintenance } from './maintenance.ts'
import type { Operation, Result } from './operations.ts'
import type { WriterSettings } from './thread-messages.ts'
import { QueueOperations } from './queue-operations.ts'

/** Carries out one operation inside a transaction that somebody else begins and commits. */
export class OperationRunner {
  readonly #queues: QueueOperations
  readonly #eventsStore: EventsStoreOperations
  readonly #channels: ChannelOperations
  readonly #maintenance: Maintenance

  constructor(database: Database.Database, channels: ChannelTable, settings: WriterSettings, leftAlone: LeftAlone) {
    const deduplication = new Deduplication(database)
    this.#queues = new QueueOperations(database, channels, deduplication, settings, leftAlone)
    this.#eventsStore = new EventsStoreOperations(database, channels, deduplication, settings, leftAlone)
    this.#channels = new ChannelOperations(channels, this.#eventsStore)
    this.#maintenance = new Maintenance(database, channels, this.#eventsStore, deduplication, leftAlone)
  }

  /** @throws RefusedError when it may not be carried out; nothing of it was written then */
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

  /** Writes what the operations have gathered; to be called before the commit. */
  flush(): void {
    this.#queues.flush()
  }

  /** Forgets what the operations have gathered. */
  discard(): void {
    this.#queues.discard()
  }
}
