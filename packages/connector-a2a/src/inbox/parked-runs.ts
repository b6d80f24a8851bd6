import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { KeyedEntry, KeyedLogFollower } from '@signalbox/broker-core/internal'
import { KeyedLog } from '@signalbox/broker-core/internal'
import { isJsonObject } from '@signalbox/http-kit/internal'

import type { KnownRun, ParkedPhase, ParkedRun } from './parked-index.ts'
import { ParkedIndex } from './parked-index.ts'

/** The compacted events store of the heads, one for each run. */
const CHANNEL = '_AGENTS_.parked'

/** The runs of all inboxes, as every node follows them. */
export class ParkedRuns {
  readonly #log: KeyedLog
  /** The tasks as this node has followed them. */
  readonly index = new ParkedIndex()
  readonly #follower: KeyedLogFollower
  readonly #closed = new AbortController()
  readonly #changed: (run: KnownRun) => void

  /**
   * @param maxAgeMs The time for which the state of a run is kept after its last change
   * @param changed Called with each change while this node follows
   */
  constructor(
    system: BrokerHandle,
    maxAgeMs: number,
    changed: (run: KnownRun) => void,
    failed: (error: unknown) => void,
  ) {
    this.#changed = changed
    this.#log = new KeyedLog(system, CHANNEL, { maxAgeMs, maxBytes: MAX_BYTES })
    this.#follower = this.#log.follow(
      {
        restart: () => this.index.clear(),
        entry: (entry, live) => this.#learn(readRun(entry), live),
        failed,
      },
      { signal: this.#closed.signal },
    )
  }

  /** Resolves when the runs are known. */
  get opened(): Promise<void> {
    return this.#follower.opened
  }

  /** Returns the last state of a run, whichever node wrote it. @throws BrokerError ENGINE_UNAVAILABLE */
  async last(run: string): Promise<KnownRun | undefined> {
    const entry = await this.#log.last(run)
    return entry && readRun(entry)
  }

  /**
   * Writes a state. Resolves with undefined if the run has changed meanwhile.
   * @param after The state that it replaces; undefined for a new run
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async write(state: ParkedRun, after: KnownRun | undefined): Promise<KnownRun | undefined> {
    const { run, ...content } = state
    const body = encodeText(JSON.stringify({ ...content, sequence: undefined, writtenAt: undefined }))
    try {
      const { sequence, timestamp: writtenAt } = await this.#log.write(run, { body }, after?.sequence ?? 0)
      const written = { ...state, sequence, writtenAt }
      this.#learn(written, true)
      return written
    } catch (error) {
      if (isBrokerError(error, 'CONFLICT')) return undefined
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#follower.closed
  }

  /** Learns a state from this node's write or from the log, whichever comes first. */
  #learn(run: KnownRun | undefined, live: boolean): void {
    if (run !== undefined && this.index.set(run) && live) this.#changed(run)
  }
}

/** About a hundred thousand states. */
const MAX_BYTES = 64 * 1024 * 1024

const PHASES: ReadonlySet<unknown> = new Set<ParkedPhase>(['stored', 'delivered', 'working', 'waiting', 'done'])

function readRun({ key, body, sequence, timestamp: writtenAt, tombstone }: KeyedEntry): KnownRun | undefined {
  if (tombstone === true) return undefined
  const value: unknown = JSON.parse(decodeText(body) ?? '')
  return isParked(value) ? { ...value, run: key, sequence, writtenAt } : undefined
}

/** The states are written by this class alone, in a form that only grows. */
function isParked(value: unknown): value is Omit<ParkedRun, 'run'> {
  return isJsonObject(value) && typeof value['agentId'] === 'string' && PHASES.has(value['phase'])
}
