import type { JetStreamManager } from '@nats-io/jetstream'
import { DiscardPolicy, RetentionPolicy, StorageType } from '@nats-io/jetstream'

import type { Connection } from './connection.ts'
import { API, isApiError } from './errors.ts'
import type { Settings } from './options.ts'
import { claimOf } from './publisher.ts'
import { DEDUPLICATION_MS } from './streams.ts'

export interface Note {
  readonly text: string
  /** The sequence of this version, for a write that expects it. */
  readonly revision: number
}

/** How long what is remembered for deduplication is kept, in milliseconds: the window of two minutes (C5) and some. */
const RECENT_MS = 150_000

/** Small texts under keys, that outlive a node: the last one of each key is kept. Keys are subjects. */
export class Notes {
  readonly #connection: Connection
  readonly #stream: string

  private constructor(connection: Connection, stream: string) {
    this.#connection = connection
    this.#stream = stream
  }

  static async open(connection: Connection, settings: Settings): Promise<{ notes: Notes; recent: Notes }> {
    const { prefix } = settings
    await addStream(connection.manager, `${prefix}-notes`, `${prefix}.n.>`, 0, settings.replicas)
    await addStream(connection.manager, `${prefix}-recent`, `${prefix}.d.>`, RECENT_MS, settings.replicas)
    return {
      notes: new Notes(connection, `${prefix}-notes`),
      recent: new Notes(connection, `${prefix}-recent`),
    }
  }

  async get(key: string): Promise<Note | undefined> {
    const found = await this.#connection.call(() =>
      this.#connection.manager.streams.getMessage(this.#stream, { last_by_subj: key }),
    )
    return found ? { text: found.string(), revision: found.seq } : undefined
  }

  /** False when `expect` is given and the note has another revision by now; 0 expects that there is none. */
  async put(key: string, text: string, expect?: number): Promise<boolean> {
    return this.#connection.call(async () => {
      try {
        if (expect === undefined) {
          await this.#connection.client.publish(key, text)
          return true
        }
        const { duplicate } = await this.#connection.client.publish(key, text, {
          msgID: claimOf(key, expect),
          expect: { lastSubjectSequence: expect },
        })
        return !duplicate
      } catch (error) {
        if (isApiError(error, API.WRONG_LAST_SEQUENCE)) return false
        throw error
      }
    })
  }

  /** Removes one note, or with a wildcard many. */
  async remove(filter: string): Promise<void> {
    await this.#connection.call(() => this.#connection.manager.streams.purge(this.#stream, { filter }))
  }

  /** The keys there are. */
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
