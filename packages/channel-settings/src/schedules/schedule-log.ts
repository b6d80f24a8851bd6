import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError, decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { KeyedContent, KeyedEntry, KeyedLogFollower } from '@signalbox/broker-core/internal'
import { KeyedLog, parseJsonText } from '@signalbox/broker-core/internal'
import type { GivenSchedule } from '@signalbox/http-kit/internal'
import { isJsonObject, isSchedule, parseTimestamp } from '@signalbox/http-kit/internal'

import type { NextTime } from './times.ts'
import { timesOf } from './times.ts'

/** The most schedules. */
export const MAX_SCHEDULES = 10_000

const DEFINITION = 'd/'
const RECORD = 'f/'

/** A schedule that operators wrote. */
export interface StoredSchedule {
  readonly given: GivenSchedule
  /** The sequence of its entry, for conditional changes. */
  readonly revision: number
  /** The ClientID of the operator who wrote it. */
  readonly changedBy: string
  /** In ms since the epoch. */
  readonly changedAt: number
}

export interface KnownSchedule extends StoredSchedule {
  /** The time from which it is due: when its times were set, or when it was resumed. In ms since the epoch. */
  readonly since: number
  readonly next: NextTime
}

/** The results of a schedule. All times are in ms since the epoch. */
export interface FireRecord {
  /** The last due time that needs no further work; 0 if there was none. */
  readonly settled: number
  /** The number of due times that passed without a message. */
  readonly missed: number
  /** The last due time with a message, and the time of the message. */
  readonly sent?: { readonly time: number; readonly at: number } | undefined
  /** A due time that is tried again. */
  readonly failure?: { readonly time: number; readonly reason: string } | undefined
}

const NO_RECORD: FireRecord = { settled: 0, missed: 0 }

interface ScheduleLogOptions {
  readonly now: () => number
  /** Called when the schedule or its record has changed. */
  readonly changed: (id: string) => void
  readonly failed: (error: unknown) => void
}

/** The schedules and their results in the log that all nodes share. */
export class ScheduleLog implements AsyncDisposable {
  readonly #log: KeyedLog
  readonly #options: ScheduleLogOptions
  readonly #follower: KeyedLogFollower
  readonly #ended = new AbortController()
  readonly #schedules = new Map<string, KnownSchedule>()
  readonly #records = new Map<string, FireRecord>()

  constructor(system: BrokerHandle, options: ScheduleLogOptions) {
    this.#log = new KeyedLog(system, '_AGENTS_.schedules')
    this.#options = options
    this.#follower = this.#log.follow(
      {
        entry: (entry) => this.#apply(entry),
        retain: (keys) => this.#retain(keys),
        failed: options.failed,
      },
      { signal: this.#ended.signal },
    )
  }

  /** Resolves when every schedule was read. */
  get opened(): Promise<void> {
    return this.#follower.opened
  }

  /** `false` while changes by other nodes do not arrive. */
  get current(): boolean {
    return this.#follower.current
  }

  all(): Iterable<KnownSchedule> {
    return this.#schedules.values()
  }

  get(id: string): KnownSchedule | undefined {
    return this.#schedules.get(id)
  }

  recordOf(id: string): FireRecord {
    return this.#records.get(id) ?? NO_RECORD
  }

  /** @throws BrokerError ARGUMENT_INVALID if there are too many, CONFLICT, ENGINE_UNAVAILABLE */
  async set(given: GivenSchedule, changedBy: string, revision?: number): Promise<void> {
    const known = this.#schedules.get(given.id)
    if (known === undefined && this.#schedules.size >= MAX_SCHEDULES) {
      const allowed = `at most ${MAX_SCHEDULES} schedules; remove one`
      throw new BrokerError('ARGUMENT_INVALID', `invalid argument id: allowed are ${allowed}`, {
        argument: 'id',
        allowed,
      })
    }
    const isSame = known !== undefined && timing(known.given) === timing(given)
    const now = this.#options.now()
    const at = given.at === undefined ? now + 1 : (parseTimestamp(given.at) ?? now + 1)
    // A time that passes while the schedule is written is due.
    await this.#define(given, { changedBy, since: isSame ? known.since : Math.min(now, at - 1), revision })
  }

  /** Pauses or resumes a schedule; returns `false` if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  async setPaused(id: string, paused: boolean, changedBy: string): Promise<boolean> {
    for (;;) {
      const last = await this.#log.last(DEFINITION + id)
      if (last === undefined || last.tombstone) return false
      const { given, since } = scheduleIn(last)
      if ((given.paused ?? false) === paused) return true
      try {
        // A pause keeps the time: the due time of a message that is about to be sent remains due until then.
        const from = paused ? since : this.#options.now()
        await this.#define({ ...given, paused }, { changedBy, since: from, revision: last.sequence })
        return true
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT')) throw error
      }
    }
  }

  async #define(
    given: GivenSchedule,
    options: { readonly changedBy: string; readonly since: number; readonly revision: number | undefined },
  ): Promise<void> {
    const { changedBy, since, revision } = options
    const body = encodeText(JSON.stringify({ schedule: given, since }))
    await this.#write(given.id, { body, tags: { changed_by: changedBy } }, revision)
  }

  /** Removes a schedule; returns `false` if there is none. @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE */
  async remove(id: string, revision?: number): Promise<boolean> {
    const last = await this.#log.last(DEFINITION + id)
    if (last === undefined || last.tombstone) return false
    await this.#write(id, undefined, revision)
    await this.#log.write(RECORD + id, undefined)
    return true
  }

  /** @throws BrokerError CONFLICT, with the revision of the schedule as `last` */
  async #write(id: string, content: KeyedContent | undefined, revision: number | undefined): Promise<void> {
    try {
      const { sequence } = await this.#log.write(DEFINITION + id, content, revision)
      await this.#follower.applied(sequence)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
      const { last } = error.details
      const message = `the schedule ${JSON.stringify(id)} has the revision ${String(last)}, not ${revision}; read it again`
      throw new BrokerError('CONFLICT', message, { id, last }, { cause: error })
    }
  }

  /**
   * Returns the last record, whichever node wrote it: a node that was suspended does not know it yet.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async lastRecord(id: string): Promise<FireRecord> {
    const last = await this.#log.last(RECORD + id)
    if (last !== undefined) await this.#follower.applied(last.sequence)
    return lastIn(last)
  }

  /**
   * Changes the record of a schedule. Resolves with `false` if it has settled the due time, whichever node did it.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async change(id: string, time: number, next: (record: FireRecord) => FireRecord): Promise<boolean> {
    for (;;) {
      const last = await this.#log.last(RECORD + id)
      const record = lastIn(last)
      if (last !== undefined && record.settled >= time) {
        await this.#follower.applied(last.sequence)
        return false
      }
      try {
        const content = { body: encodeText(JSON.stringify(next(record))) }
        const { sequence } = await this.#log.write(RECORD + id, content, last?.sequence ?? 0)
        await this.#follower.applied(sequence)
        return true
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT')) throw error
      }
    }
  }

  #apply(entry: KeyedEntry): void {
    const { key, tombstone } = entry
    const id = key.slice(2)
    try {
      if (key.startsWith(RECORD)) {
        if (tombstone) this.#records.delete(id)
        else this.#records.set(id, recordIn(entry))
      } else if (key.startsWith(DEFINITION)) {
        // An entry that this version cannot read ends the schedule on this node.
        this.#schedules.delete(id)
        if (!tombstone) this.#schedules.set(id, knownIn(entry))
      }
    } finally {
      this.#options.changed(id)
    }
  }

  #retain(keys: ReadonlySet<string>): void {
    for (const id of this.#schedules.keys()) {
      if (keys.has(DEFINITION + id)) continue
      this.#schedules.delete(id)
      this.#options.changed(id)
    }
    for (const id of this.#records.keys()) if (!keys.has(RECORD + id)) this.#records.delete(id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort()
    await this.#follower.closed
  }
}

/** The members that decide when a schedule is due. */
function timing({ cron, every_seconds, at, time_zone, paused = false }: GivenSchedule): string {
  return JSON.stringify([cron, every_seconds, at, time_zone, paused])
}

/** @throws TypeError */
function scheduleIn({ body }: KeyedEntry): { readonly given: GivenSchedule; readonly since: number } {
  const value = parseJsonText(decodeText(body) ?? '')
  const { schedule, since } = isJsonObject(value) ? value : {}
  if (!isSchedule(schedule) || typeof since !== 'number') throw new TypeError('it is no schedule of this version')
  return { given: schedule, since }
}

/** @throws TypeError, RangeError */
function knownIn(entry: KeyedEntry): KnownSchedule {
  const { given, since } = scheduleIn(entry)
  const { sequence: revision, timestamp: changedAt, tags } = entry
  return { given, since, next: timesOf(given, since), revision, changedBy: tags['changed_by'] ?? '', changedAt }
}

function lastIn(last: KeyedEntry | undefined): FireRecord {
  return last === undefined || last.tombstone ? NO_RECORD : recordIn(last)
}

/** Returns the record; only numbers and texts that this version knows. */
function recordIn({ body }: KeyedEntry): FireRecord {
  const value = parseJsonText(decodeText(body) ?? '')
  const { settled, missed, sent, failure } = isJsonObject(value) ? value : {}
  const isSent = isJsonObject(sent) && typeof sent['time'] === 'number' && typeof sent['at'] === 'number'
  const isFailure = isJsonObject(failure) && typeof failure['time'] === 'number'
  return {
    settled: typeof settled === 'number' ? settled : 0,
    missed: typeof missed === 'number' ? missed : 0,
    sent: isSent ? { time: Number(sent['time']), at: Number(sent['at']) } : undefined,
    failure: isFailure ? { time: Number(failure['time']), reason: String(failure['reason']) } : undefined,
  }
}
