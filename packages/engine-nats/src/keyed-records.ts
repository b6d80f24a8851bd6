import { DEDUPLICATION_MS } from '@signalbox/broker-core/engine'
import type { JetStreamManager } from '@nats-io/jetstream'
import { DiscardPolicy, RetentionPolicy, StorageType } from '@nats-io/jetstream'

import type { Connection } from './connection.ts'
import { sharedSetUp } from './connection.ts'
import { API, asBrokerError, isApiError, isWrongSequence } from './errors.ts'
import type { Settings } from './options.ts'
import type { Publisher } from './publisher.ts'
import { claimOf } from './publisher.ts'
import { millisecondsOf } from './stored-messages.ts'

interface KeyedRecord {
  readonly text: string
  /** The sequence of this version, for a conditional write. */
  readonly revision: number
  /** The time when the servers stored it, in milliseconds since the epoch. */
  readonly timestamp: number
}

/**
 * The time for which deduplication data is kept, in milliseconds: the window of two minutes, and a margin.
 */
const RECENT_MS = 150_000

/**
 * Small texts under keys that outlive a node. A stream keeps the last text of each key; keys are subjects.
 */
export class KeyedRecords {
  readonly #connection: Connection
  readonly #publisher: Publisher
  readonly #stream: string

  private constructor(connection: Connection, publisher: Publisher, stream: string) {
    this.#connection = connection
    this.#publisher = publisher
    this.#stream = stream
  }

  static async open(
    connection: Connection,
    publisher: Publisher,
    settings: Settings,
  ): Promise<{ keyedRecords: KeyedRecords; recent: KeyedRecords }> {
    const { prefix } = settings
    const { manager } = connection
    const { replicas } = settings
    await sharedSetUp(() => addStream(manager, `${prefix}-notes`, `${prefix}.n.>`, 0, replicas))
    await sharedSetUp(() => addStream(manager, `${prefix}-recent`, `${prefix}.d.>`, RECENT_MS, replicas))
    return {
      keyedRecords: new KeyedRecords(connection, publisher, `${prefix}-notes`),
      recent: new KeyedRecords(connection, publisher, `${prefix}-recent`),
    }
  }

  async get(key: string): Promise<KeyedRecord | undefined> {
    const found = await this.#connection.call(() =>
      this.#connection.manager.streams.getMessage(this.#stream, { last_by_subj: key }),
    )
    return found ? { text: found.string(), revision: found.seq, timestamp: millisecondsOf(found.timestamp) } : undefined
  }

  /**
   * Writes a record. Returns false when `expect` is given and the record has another revision; `expect` 0
   * means that there is no record.
   */
  async put(key: string, text: string, expect?: number): Promise<boolean> {
    if (expect === undefined) {
      await this.#connection.call(() => this.#connection.client.publish(key, text))
      return true
    }
    const options = { messageId: claimOf(key, expect), expectLastOfSubject: expect }
    try {
      const { duplicate } = await this.#publisher.publish(key, Buffer.from(text), options, (error) =>
        isWrongSequence(error) ? error : undefined,
      )
      return !duplicate
    } catch (error) {
      if (isWrongSequence(error)) return false
      throw asBrokerError(error)
    }
  }

  /** Removes one record, or with a wildcard several. */
  async remove(filter: string): Promise<void> {
    await this.#connection.call(() => this.#connection.manager.streams.purge(this.#stream, { filter }))
  }

  /** Lists the keys that match the filter. */
  async keys(filter: string): Promise<readonly string[]> {
    const info = await this.#connection.call(() =>
      this.#connection.manager.streams.info(this.#stream, { subjects_filter: filter }),
    )
    return Object.keys(info.state.subjects ?? {})
  }
}

async function addStream(
  manager: JetStreamManager,
  name: string,
  subject: string,
  maxAgeMs: number,
  replicas: number,
): Promise<void> {
  try {
    await manager.streams.info(name)
  } catch (error) {
    if (!isApiError(error, API.STREAM_NOT_FOUND)) throw error
    await manager.streams.add({
      name,
      subjects: [subject],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      max_msgs_per_subject: 1,
      max_age: maxAgeMs * 1_000_000,
      duplicate_window: DEDUPLICATION_MS * 1_000_000,
      num_replicas: replicas,
    })
  }
}
