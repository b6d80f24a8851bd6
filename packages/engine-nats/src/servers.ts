import { unavailable } from '@signalbox/broker-core/engine'
import { performance } from 'node:perf_hooks'

import type { Connection } from './connection.ts'
import type { KeyedRecords } from './keyed-records.ts'
import type { NatsEngineProblem, Settings } from './options.ts'
import type { Subjects } from './subjects.ts'

/** The difference between clocks that causes a warning, in milliseconds. */
const WARN_MS = 1_000
/** The difference at which a node is not ready and treats no message as expired, in milliseconds. */
const MAX_SKEW_MS = 5_000
/**
 * The interval at which the node checks its own clock, and at which it reads the servers' time, in
 * milliseconds.
 */
const LOOK_MS = 5_000
const MEASURE_MS = 60_000
/** The minimum interval at which probes read the servers' time while the clock is wrong, in milliseconds. */
const ASK_AGAIN_MS = 1_000

/**
 * The difference between the clock of this node and that of the servers. Due times and expiries are
 * absolute, and every node acts on them: a node whose clock is a day ahead would delete messages that the
 * others still have to deliver.
 */
export class ServerClock {
  readonly #keyedRecords: KeyedRecords
  readonly #key: string
  readonly #onProblem: (problem: NatsEngineProblem) => void
  /** The servers' time minus the monotonic time of this node; undefined before the first measurement. */
  #serversAhead: number | undefined
  #measuredAt = -Infinity
  #measuring: Promise<void> | undefined
  #reported: 'right' | 'off' | 'skewed' = 'right'
  #timer: NodeJS.Timeout | undefined

  private constructor(keyedRecords: KeyedRecords, subjects: Subjects, onProblem: (problem: NatsEngineProblem) => void) {
    this.#keyedRecords = keyedRecords
    this.#key = subjects.keyedRecord('clock')
    this.#onProblem = onProblem
  }

  static async start(
    keyedRecords: KeyedRecords,
    subjects: Subjects,
    onProblem: (problem: NatsEngineProblem) => void,
  ): Promise<ServerClock> {
    const clock = new ServerClock(keyedRecords, subjects, onProblem)
    await clock.measure()
    clock.#timer = setInterval(() => {
      const isDue = performance.now() - clock.#measuredAt >= MEASURE_MS
      if (isDue || clock.#state !== clock.#reported) clock.#measureInBackground()
    }, LOOK_MS)
    clock.#timer.unref()
    return clock
  }

  #measureInBackground(): void {
    // A failed measurement is repeated later; until then the last result applies.
    this.measure().catch(() => {})
  }

  /** Reads the servers' time. @throws BrokerError ENGINE_UNAVAILABLE */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined))
    return this.#measuring
  }

  /**
   * Stores a record and reads its time: with 2.9 an ordinary user has no other way to read the servers'
   * time.
   */
  async #measure(): Promise<void> {
    const [before, startedAt] = [Date.now(), performance.now()]
    await this.#keyedRecords.put(this.#key, '')
    const record = await this.#keyedRecords.get(this.#key)
    if (!record) return
    const [after, endedAt] = [Date.now(), performance.now()]
    // The clock was set in between: the next check measures again.
    if (Math.abs(after - before - (endedAt - startedAt)) > WARN_MS) return
    // A time between question and answer counts as no difference, so a slow answer causes none.
    const difference = record.timestamp - Math.min(Math.max(record.timestamp, before), after)
    this.#serversAhead = difference + after - endedAt
    this.#measuredAt = endedAt
    this.#report()
  }

  /**
   * The time by which this node's clock is ahead of the servers', in milliseconds; negative when it is
   * behind.
   */
  get skewMs(): number {
    return this.#serversAhead === undefined ? 0 : Date.now() - performance.now() - this.#serversAhead
  }

  /** `true` when the clocks differ so much that no message may be treated as expired. */
  get isSkewed(): boolean {
    return Math.abs(this.skewMs) > MAX_SKEW_MS
  }

  /**
   * Returns the time that decides about due messages and expiries. While the clocks disagree, it is the
   * earlier of both.
   */
  now(): number {
    const now = Date.now()
    return this.isSkewed ? Math.min(now, now - this.skewMs) : now
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE while this node would give messages wrong times */
  assertRight(): void {
    if (this.isSkewed)
      throw unavailable(`${this.#text()}; messages with a delay or an expiry are refused until the clocks agree`)
  }

  /** Returns the check for the probes: a node with a wrong clock is alive, but not ready. */
  async check(): Promise<{ readonly name: 'clock'; readonly ok: boolean; readonly detail: string }> {
    // The clock may have been corrected, or the machine may have slept. Limited, because probes are frequent.
    const isDue = this.isSkewed && performance.now() - this.#measuredAt >= ASK_AGAIN_MS
    if (isDue || this.#state !== this.#reported) await this.measure().catch(() => {})
    return { name: 'clock', ok: !this.isSkewed, detail: this.#text() }
  }

  #text(): string {
    const skew = this.skewMs
    if (Math.abs(skew) <= WARN_MS) return 'agrees with the NATS servers'
    const [seconds, side] = [Math.round(Math.abs(skew) / 1_000), skew > 0 ? 'ahead of' : 'behind']
    return `the clock of this node is ${seconds} s ${side} that of the NATS servers`
  }

  get #state(): 'right' | 'off' | 'skewed' {
    if (this.isSkewed) return 'skewed'
    return Math.abs(this.skewMs) > WARN_MS ? 'off' : 'right'
  }

  #report(): void {
    const state = this.#state
    if (state === this.#reported) return
    this.#reported = state
    if (state === 'right') {
      this.#onProblem({ kind: 'healed', message: 'the clock of this node agrees with the NATS servers again' })
      return
    }
    const consequence =
      state === 'off'
        ? 'due times and expiries are wrong by the same amount'
        : 'the node is not ready and removes no expired messages until the clocks agree'
    this.#onProblem({ kind: 'warning', message: `${this.#text()}: ${consequence}; synchronize both by NTP` })
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

/** Streams accept messages with a time to live from server 2.11 on, which is API level 1. */
const MESSAGE_TTL = { minor: 11, level: 1 } as const

/** Before server 2.10, replicas may elect a leader that misses acknowledged messages. */
const SAFE_MINOR = 10
/** The first patch of 2.10 that keeps messages over a lower limit. */
const KEEPS_OVER_LIMIT_PATCH = 5

/**
 * The features of the servers beyond 2.9: those that both the connected server and the leader of JetStream
 * offer. They are read repeatedly, so servers can be upgraded while nodes run.
 */
export class ServerFeatures {
  readonly #connection: Connection
  readonly #settings: Settings
  #messageTtl = false
  #keepsOverLimit = false
  #warnedOf = ''

  private constructor(connection: Connection, settings: Settings) {
    this.#connection = connection
    this.#settings = settings
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  static async read(connection: Connection, settings: Settings): Promise<ServerFeatures> {
    const features = new ServerFeatures(connection, settings)
    await features.#read()
    return features
  }

  /** `true` when the servers remove a message at the end of its time to live (2.11). */
  get messageTtl(): boolean {
    return this.#messageTtl
  }

  /** `true` when a lower limit of a stream that discards new messages removes no stored one (nats-server#4775, 2.10.5). */
  get keepsOverLimit(): boolean {
    return this.#keepsOverLimit
  }

  async #read(): Promise<void> {
    const { api } = await this.#connection.call(() => this.#connection.manager.getAccountInfo())
    const version = this.#connection.serverVersion
    this.#messageTtl = minorOf(version) >= MESSAGE_TTL.minor && (api.level ?? 0) >= MESSAGE_TTL.level
    const minor = minorOf(version)
    this.#keepsOverLimit = minor > SAFE_MINOR || (minor === SAFE_MINOR && patchOf(version) >= KEEPS_OVER_LIMIT_PATCH)
    this.#warn(version)
  }

  /**
   * Reads the features again, and calls `onMore` when there are new ones. A failed read is repeated the next
   * time.
   */
  refresh(onMore: () => void): void {
    const before = this.#messageTtl
    this.#read()
      .then(() => {
        if (this.#messageTtl && !before && this.#connection.connected) onMore()
      })
      .catch(() => {})
  }

  #warn(version: string): void {
    if (this.#settings.replicas === 1 || minorOf(version) >= SAFE_MINOR || this.#warnedOf === version) return
    this.#warnedOf = version
    this.#settings.onProblem({
      kind: 'warning',
      message: `nats-server ${version} may lose acknowledged messages when servers freeze; upgrade to 2.10 or later, preferably the latest`,
    })
  }
}

/**
 * Returns the minor version of server 2; infinity for later major versions, 0 for earlier and invalid ones.
 */
function minorOf(version: string): number {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major) > 2 ? Infinity : Number(major) < 2 ? 0 : Number(minor)
}

function patchOf(version: string): number {
  return Number(/^v?\d+\.\d+\.(\d+)/.exec(version)?.[1] ?? 0)
}
