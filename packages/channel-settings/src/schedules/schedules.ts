import type { BrokerHandle, Engine, MessageInput, SpanParent, Tracing } from '@signalbox/broker-core'
import { messageOf, positionFor } from '@signalbox/broker-core/internal'
import type { ArgumentProblem, GivenSchedule } from '@signalbox/http-kit/internal'
import { CATCHUP_SECONDS, isSchedule, scheduleProblems } from '@signalbox/http-kit/internal'

import type { FireRecord, KnownSchedule, StoredSchedule } from './schedule-log.ts'
import { ScheduleLog } from './schedule-log.ts'
import { lastTime, timeProblems } from './times.ts'

/** The time for which a node lets each node before it act first, in ms. */
const TURN_MS = 250

/** The longest interval between two looks at the due times, in ms: the clock may have been set. */
const LOOK_MS = 1_000

/** The most schedules that send at the same time. */
const MAX_BUSY = 64

/** The most due times that are computed in one tick of the event loop. */
const SLICE = 100

/** The pause after a failed send, in ms, doubled after each further one up to the longest. */
const RETRY = { firstMs: 1_000, longestMs: 60_000 }

/** The time for which every engine recognizes a repeated send, in ms. */
const RECOGNIZED_MS = 120_000

/** The results of due times: `duplicate` if the message had been sent, and its record was lost or late. */
export type FireOutcome = 'sent' | 'duplicate' | 'missed' | 'failed'

export interface ScheduleOptions {
  /** The nodes of the cluster. */
  readonly engine: Pick<Engine, 'node' | 'otherNodes'>
  /** @default Date.now */
  readonly now?: () => number
  /** Receives the results of this node. `lagMs` is the time from the due time until the message was sent. */
  readonly fired?: (outcome: FireOutcome, count: number, lagMs?: number) => void
  /** Receives failures that no caller sees. */
  readonly failed: (error: unknown) => void
}

/** A schedule with its results. */
export interface ScheduleState extends StoredSchedule {
  readonly record: FireRecord
  /** Returns the next due times, in ms since the epoch; none while it is paused. */
  readonly next: (count: number) => readonly number[]
}

/**
 * The schedules. Every node sends each due message unless it is recorded; the key of the message lets the engine store
 * one of them.
 */
export class Schedules implements AsyncDisposable {
  readonly #system: BrokerHandle
  readonly #options: ScheduleOptions
  readonly #now: () => number
  readonly #log: ScheduleLog
  readonly #ended = new AbortController()
  /** The first due time of each schedule that is not settled, in ms since the epoch. */
  readonly #due = new Map<string, number>()
  /** The schedules whose due time must be computed again. */
  readonly #changed = new Set<string>()
  readonly #busy = new Map<string, Promise<void>>()
  readonly #failures = new Map<string, { readonly count: number; readonly retryAt: number }>()
  #timer: NodeJS.Timeout | undefined
  #wakesAt = Infinity

  private constructor(system: BrokerHandle, options: ScheduleOptions) {
    this.#system = system
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#log = new ScheduleLog(system, {
      now: this.#now,
      changed: (id) => {
        this.#changed.add(id)
        this.#wake(0)
      },
      failed: options.failed,
    })
  }

  /** Resolves when every schedule is known. The caller must dispose of it before the engine closes. */
  static async open(system: BrokerHandle, options: ScheduleOptions): Promise<Schedules> {
    const schedules = new Schedules(system, options)
    await schedules.#log.opened
    return schedules
  }

  /** `false` while changes by other nodes do not arrive. */
  get current(): boolean {
    return this.#log.current
  }

  list(): readonly ScheduleState[] {
    return [...this.#log.all()].map((known) => this.#stateOf(known))
  }

  get(id: string): ScheduleState | undefined {
    const known = this.#log.get(id)
    return known && this.#stateOf(known)
  }

  #stateOf(known: KnownSchedule): ScheduleState {
    const { given, revision, changedBy, changedAt } = known
    const record = this.#log.recordOf(given.id)
    return { given, revision, changedBy, changedAt, record, next: (count) => this.#nextTimes(known, record, count) }
  }

  #nextTimes({ given, next, since }: KnownSchedule, { settled }: FireRecord, count: number): readonly number[] {
    const times: number[] = []
    let time = given.paused ? undefined : next(Math.max(settled, since, this.#now()))
    for (; time !== undefined && times.length < count; time = next(time)) times.push(time)
    return times
  }

  /** Returns every problem of a schedule. */
  problems(given: unknown): readonly ArgumentProblem[] {
    const problems = scheduleProblems(given)
    return isSchedule(given) && problems.length === 0 ? timeProblems(given, this.#now()) : problems
  }

  /**
   * Writes a schedule, which replaces the one with its id; resolves when it is durable, and in force on this node.
   * @param given A schedule without {@link problems}
   * @param revision The revision that the schedule must have; 0 if there must be none. @default any
   * @throws BrokerError ARGUMENT_INVALID if there are too many, CONFLICT, ENGINE_UNAVAILABLE
   */
  async set(given: GivenSchedule, changedBy: string, revision?: number): Promise<ScheduleState | undefined> {
    await this.#log.set(given, changedBy, revision)
    return this.get(given.id)
  }

  /** Removes a schedule; `false` if there is none. @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE */
  remove(id: string, revision?: number): Promise<boolean> {
    return this.#log.remove(id, revision)
  }

  /** Pauses or resumes a schedule. Due times in a pause are not sent later. @throws BrokerError ENGINE_UNAVAILABLE */
  async setPaused(id: string, paused: boolean, changedBy: string): Promise<ScheduleState | undefined> {
    return (await this.#log.setPaused(id, paused, changedBy)) ? this.get(id) : undefined
  }

  /**
   * Sends the message of a schedule now, also of a paused one; undefined if there is none. Its due times stay.
   * @throws BrokerError of the send
   */
  async trigger(id: string): Promise<{ readonly messageId: string } | undefined> {
    const known = this.#log.get(id)
    if (known === undefined) return undefined
    const sent = await this.#send(known.given, this.#now())
    return { messageId: sent.id }
  }

  /** Looks at the due times after a time, in ms, unless it does so earlier. */
  #wake(afterMs: number): void {
    const at = performance.now() + afterMs
    if (at >= this.#wakesAt || this.#ended.signal.aborted) return
    clearTimeout(this.#timer)
    this.#wakesAt = at
    this.#timer = setTimeout(() => this.#look(), Math.ceil(afterMs))
    this.#timer.unref()
  }

  #look(): void {
    this.#wakesAt = Infinity
    this.#computeDue()
    const now = this.#now()
    let waitMs = this.#changed.size > 0 ? 0 : LOOK_MS
    // The records of other nodes are not known, or the time is wrong.
    const mayFire = this.#log.current && this.#options.engine.node?.clockSkewed !== true
    for (const [id, time] of this.#due) {
      // The end of each send looks again.
      if (this.#busy.size >= MAX_BUSY) break
      const inMs = (time > now || !mayFire ? time : time + this.#turnMs(id)) - now
      if (inMs > 0) waitMs = Math.min(waitMs, inMs)
      else if (mayFire && !this.#busy.has(id) && this.#mayTry(id)) this.#busy.set(id, this.#fire(id))
    }
    this.#wake(waitMs)
  }

  /** Returns the time for which this node lets others send first, in ms. */
  #turnMs(id: string): number {
    const { engine } = this.#options
    if (engine.node === undefined) return 0
    const others = engine.otherNodes?.().map((other) => other.id) ?? []
    return positionFor(id, engine.node.id, others) * TURN_MS
  }

  #computeDue(): void {
    let left = SLICE
    for (const id of this.#changed) {
      if (left-- === 0) return
      this.#changed.delete(id)
      const known = this.#log.get(id)
      const time =
        known === undefined || known.given.paused
          ? undefined
          : known.next(Math.max(this.#log.recordOf(id).settled, known.since))
      if (time === undefined) this.#due.delete(id)
      else this.#due.set(id, time)
      if (known === undefined) this.#failures.delete(id)
    }
  }

  #mayTry(id: string): boolean {
    const failure = this.#failures.get(id)
    return failure === undefined || failure.retryAt <= performance.now()
  }

  /** Never rejects. */
  async #fire(id: string): Promise<void> {
    try {
      await this.#fireDue(id)
      this.#failures.delete(id)
    } catch (error) {
      const { count } = this.#failures.get(id) ?? { count: 0 }
      const pauseMs = Math.min(RETRY.firstMs * 2 ** Math.min(count, 20), RETRY.longestMs)
      this.#failures.set(id, { count: count + 1, retryAt: performance.now() + pauseMs })
      if (!this.#ended.signal.aborted) this.#options.failed(error)
    } finally {
      this.#busy.delete(id)
      this.#changed.add(id)
      this.#wake(0)
    }
  }

  async #fireDue(id: string): Promise<void> {
    const record = await this.#log.lastRecord(id)
    const known = this.#log.get(id)
    if (known === undefined || known.given.paused) return
    const now = this.#now()
    const due = lastTime(known.next, Math.max(record.settled, known.since), now)
    if (due === undefined) return
    const { time, before } = due
    const windowMs = (known.given.catchup_window_seconds ?? CATCHUP_SECONDS) * 1000
    if (now - time > windowMs) {
      const missed = before + 1
      const first = await this.#log.change(id, time, (last) => ({ ...settled(last, time, missed), sent: last.sent }))
      if (first) this.#options.fired?.('missed', missed)
      return
    }
    const isFirst = await this.#deliver(known, { time, before, windowMs })
    if (isFirst && before > 0) this.#options.fired?.('missed', before)
  }

  /** Sends the message of a due time and records it. Returns `false` if another node recorded it. */
  async #deliver(known: KnownSchedule, due: { time: number; before: number; windowMs: number }): Promise<boolean> {
    const { given, next } = known
    const { time, before, windowMs } = due
    const record = (): Promise<boolean> =>
      this.#log.change(given.id, time, (last) => ({ ...settled(last, time, before), sent: { time, at: this.#now() } }))
    // Subscribers cannot recognize a repeated event, so a record prevents it.
    if (given.target.type === 'events' && !(await record())) return false
    // Until the next due time, a restart may send this one again; after it, only the later one.
    const until = Math.max(time + RECOGNIZED_MS, Math.min(time + windowMs, next(time) ?? Infinity))
    let isDuplicate: boolean
    try {
      isDuplicate = (await this.#send(given, time, until)).duplicate
    } catch (error) {
      this.#options.fired?.('failed', 1)
      await this.#recordFailure(given.id, time, messageOf(error))
      throw error
    }
    const isFirst = given.target.type === 'events' || (await record())
    if (isDuplicate) this.#options.fired?.('duplicate', 1)
    else this.#options.fired?.('sent', 1, this.#now() - time)
    return isFirst
  }

  async #recordFailure(id: string, time: number, reason: string): Promise<void> {
    const { failure } = this.#log.recordOf(id)
    if (failure?.time === time && failure.reason === reason) return
    await this.#log.change(id, time, (last) => ({ ...last, failure: { time, reason } })).catch(this.#options.failed)
  }

  /** @param until The time until which a repeat is recognized. @default it is another message */
  async #send(
    { id, target: { type, channel }, message: { body, metadata, tags = {} } }: GivenSchedule,
    time: number,
    until?: number,
  ): Promise<{ readonly id: string; readonly duplicate: boolean }> {
    const at = new Date(time).toISOString()
    const hasGroup = tags['group'] !== undefined || tags['ce_partitionkey'] !== undefined
    const input: MessageInput = {
      body,
      metadata,
      tags: {
        ...(hasGroup ? {} : { group: id }),
        ...tags,
        schedule_id: id,
        schedule_time: at,
        ...(until === undefined ? {} : { message_id: `${id} ${at}` }),
      },
      deduplicationUntil: until,
    }
    const { tracing } = this.#system
    const broker = tracing === undefined ? this.#system : this.#system.within(spansOf(tracing, id))
    switch (type) {
      case 'queues':
        return broker.queues.send(channel, input)
      case 'events_store': {
        const { id: messageId, duplicate } = await broker.eventsStore.publish(channel, input)
        return { id: messageId, duplicate }
      }
      default:
        return { ...(await broker.events.publish(channel, input)), duplicate: false }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort()
    clearTimeout(this.#timer)
    await Promise.all(this.#busy.values())
    await this.#log[Symbol.asyncDispose]()
  }
}

/** Returns a record in which a due time needs no further work. */
function settled({ missed }: FireRecord, time: number, more: number): Pick<FireRecord, 'settled' | 'missed'> {
  return { settled: time, missed: missed + more }
}

/** Returns the parent of the spans in which a schedule sends: each begins a new trace. */
function spansOf(tracing: Tracing, id: string): SpanParent {
  return {
    child: (start) => tracing.begin({ ...start, attributes: { ...start.attributes, 'signalbox.schedule.id': id } }),
  }
}
