import { createHash } from 'node:crypto'

import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'

/** The compacted events store of the records. */
const CHANNEL = '_AGENTS_.runs'

const DAY_MS = 86_400_000

/** A record is renewed when its task is used a day after it was written, so that it stays for a week of silence. */
const RENEW_MS = DAY_MS
const KEEP_MS = 8 * DAY_MS

/** About a million records. Beyond it the oldest are removed. */
const MAX_BYTES = 256 * 1024 * 1024

/** The maximum number of records that a node keeps in memory. */
const MAX_KNOWN = 10_000

interface TaskRecord {
  readonly callerId: string
  readonly sequence: number
  /** The time of the record, in ms since the epoch. */
  readonly writtenAt: number
}

/** The durable records of the callers that began tasks, which all nodes share. */
export class TaskRecords {
  readonly #log: KeyedLog
  /** In the order of their last use. */
  readonly #known = new Map<string, TaskRecord>()

  constructor(system: BrokerHandle) {
    this.#log = new KeyedLog(system, CHANNEL, { maxAgeMs: KEEP_MS, maxBytes: MAX_BYTES })
  }

  /** Returns the ClientID of the caller that began a task; undefined without a record. @throws BrokerError ENGINE_UNAVAILABLE */
  async callerOf(agentId: string, taskId: string): Promise<string | undefined> {
    const key = keyOf(agentId, taskId)
    const record = this.#used(key) ?? this.#learn(key, await this.#log.last(key))
    if (record === undefined) return undefined
    if (Date.now() - record.writtenAt > RENEW_MS) {
      // Another node may renew it at the same time.
      await this.#write(key, record.callerId, record.sequence).catch((error: unknown) => {
        this.#known.delete(key)
        if (!isBrokerError(error, 'CONFLICT')) throw error
      })
    }
    return record.callerId
  }

  /** Records the caller that began a task, unless it has a record. Resolves when that is durable. @throws BrokerError ENGINE_UNAVAILABLE */
  async add(agentId: string, taskId: string, callerId: string): Promise<void> {
    const key = keyOf(agentId, taskId)
    if (this.#used(key) !== undefined) return
    try {
      await this.#write(key, callerId, 0)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
      this.#learn(key, await this.#log.last(key))
    }
  }

  async #write(key: string, callerId: string, expected: number): Promise<void> {
    const { sequence, timestamp } = await this.#log.write(key, { body: encodeText(callerId) }, expected)
    this.#keep(key, { callerId, sequence, writtenAt: timestamp })
  }

  #learn(key: string, event: StoredEvent | undefined): TaskRecord | undefined {
    const callerId = event === undefined || event.tombstone === true ? undefined : decodeText(event.body)
    if (event === undefined || callerId === undefined) return undefined
    return this.#keep(key, { callerId, sequence: event.sequence, writtenAt: event.timestamp })
  }

  /** Returns a record from memory. One that the channel may have removed is none. */
  #used(key: string): TaskRecord | undefined {
    const record = this.#known.get(key)
    if (record === undefined) return undefined
    this.#known.delete(key)
    return Date.now() - record.writtenAt > KEEP_MS ? undefined : this.#keep(key, record)
  }

  #keep(key: string, record: TaskRecord): TaskRecord {
    this.#known.delete(key)
    this.#known.set(key, record)
    if (this.#known.size > MAX_KNOWN) {
      const oldest = this.#known.keys().next()
      if (oldest.done !== true) this.#known.delete(oldest.value)
    }
    return record
  }
}

/** An agent_id has no blank. */
function keyOf(agentId: string, taskId: string): string {
  return `t/${createHash('sha256').update(`${agentId} ${taskId}`).digest('hex')}`
}
