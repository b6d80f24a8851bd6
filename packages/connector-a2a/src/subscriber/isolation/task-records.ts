import { createHash } from 'node:crypto'

import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { KeyedLog } from '@signalbox/broker-core/internal'
import { requestLog } from '@signalbox/broker-core/internal'

const DAY_MS = 86_400_000

/** A record is renewed when its task is used a day after it was written, so that it stays for a week of silence. */
const RENEW_MS = DAY_MS
const KEEP_MS = 8 * DAY_MS

/** The most runs of a task that its record names. */
const MAX_RUNS = 16

/** The maximum number of records that a node keeps in memory. */
const MAX_KNOWN = 10_000

interface TaskRecord {
  readonly callerId: string
  /** The last runs of the task, oldest first; empty if its events are not kept. */
  readonly runs: readonly string[]
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
    this.#log = requestLog(system)
  }

  /** Returns the ClientID of the caller that began a task; undefined without a record. @throws BrokerError ENGINE_UNAVAILABLE */
  async callerOf(agentId: string, taskId: string): Promise<string | undefined> {
    const key = keyOf(agentId, taskId)
    const record = this.#used(key) ?? this.#learn(key, await this.#log.last(key))
    if (record === undefined) return undefined
    if (Date.now() - record.writtenAt > RENEW_MS) {
      // Another node may renew it at the same time.
      await this.#write(key, record, record.sequence).catch((error: unknown) => {
        this.#known.delete(key)
        if (!isBrokerError(error, 'CONFLICT')) throw error
      })
    }
    return record.callerId
  }

  /**
   * Returns the last run of a task, and the caller that began the task; undefined if its events are not kept.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async runOf(
    agentId: string,
    taskId: string,
  ): Promise<{ readonly run: string; readonly callerId: string } | undefined> {
    const key = keyOf(agentId, taskId)
    // Another node may have written a later run.
    const { runs = [], callerId } = this.#learn(key, await this.#log.last(key)) ?? {}
    const run = runs.at(-1)
    return run === undefined || callerId === undefined ? undefined : { run, callerId }
  }

  /**
   * Returns the last runs of a task, oldest first; none if its events are not kept.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async runsOf(agentId: string, taskId: string): Promise<readonly string[]> {
    const key = keyOf(agentId, taskId)
    return this.#learn(key, await this.#log.last(key))?.runs ?? []
  }

  /**
   * Records the caller that began a task, unless it has a record, and the last run of the task. Resolves when that is
   * durable.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async add(agentId: string, taskId: string, callerId: string, run?: string): Promise<void> {
    const key = keyOf(agentId, taskId)
    const added = run === undefined ? [] : [run]
    let known = this.#used(key)
    while (known === undefined || !added.every((one) => known?.runs.includes(one))) {
      const runs = [...(known?.runs ?? []), ...added].slice(-MAX_RUNS)
      try {
        await this.#write(key, { callerId: known?.callerId ?? callerId, runs }, known?.sequence ?? 0)
        return
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT')) throw error
        known = this.#learn(key, await this.#log.last(key))
        if (known === undefined) return
      }
    }
  }

  async #write(
    key: string,
    { callerId, runs }: Pick<TaskRecord, 'callerId' | 'runs'>,
    expected: number,
  ): Promise<void> {
    // The body is what nodes of older versions read.
    const run = runs.at(-1)
    const content = {
      body: encodeText(callerId),
      ...(run === undefined ? {} : { tags: { run, runs: runs.join(' ') } }),
    }
    const { sequence, timestamp } = await this.#log.write(key, content, expected)
    this.#keep(key, { callerId, runs, sequence, writtenAt: timestamp })
  }

  #learn(key: string, event: StoredEvent | undefined): TaskRecord | undefined {
    const callerId = event === undefined || event.tombstone === true ? undefined : decodeText(event.body)
    if (event === undefined || callerId === undefined) return undefined
    const { run, runs = run } = event.tags
    return this.#keep(key, {
      callerId,
      runs: runs?.split(' ') ?? [],
      sequence: event.sequence,
      writtenAt: event.timestamp,
    })
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
