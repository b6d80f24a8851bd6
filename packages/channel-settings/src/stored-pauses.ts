import type { PauseStore, QueuePause, QueuePauses } from '@signalbox/broker-core'
import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { KeyedContent, KeyedEntry, KeyedLog } from '@signalbox/broker-core/internal'
import { isJsonObject, parseTimestamp } from '@signalbox/http-kit/internal'

const PAUSE = 'p/'

/** The time after which a pause that has ended is removed from the log, in ms: more than clocks of nodes differ. */
const KEPT_MS = 3_600_000

interface StoredPausesParts {
  readonly log: KeyedLog
  /** The pauses that are in force on this node. */
  readonly pauses: QueuePauses
  /** Resolves when this node has applied an entry. */
  readonly applied: (sequence: number) => Promise<void>
  /** Receives failures that no caller sees. */
  readonly failed: (error: unknown) => void
}

/** The pauses of queues in the log of the channel settings, which all nodes share. */
export class StoredPauses implements PauseStore {
  readonly #parts: StoredPausesParts
  /** The pauses of receivers that are being written, by queue. */
  readonly #extending = new Map<string, { readonly until: number; readonly done: Promise<void> }>()
  /** The sequences of pauses that ended long ago. */
  readonly #ended = new Map<string, number>()

  constructor(parts: StoredPausesParts) {
    this.#parts = parts
    parts.pauses.useStore(this)
  }

  /** Pauses a queue; replaces its pause. Resolves when that is in force on this node. @throws BrokerError */
  async pause(queue: string, pause: QueuePause): Promise<void> {
    const { log, applied } = this.#parts
    await applied((await log.write(keyOf(queue), contentOf(pause))).sequence)
  }

  /** Ends the pause of a queue; returns `false` if it has none. @throws BrokerError */
  async resume(queue: string): Promise<boolean> {
    const { log, applied } = this.#parts
    const key = keyOf(queue)
    const last = await log.last(key)
    if (last === undefined || last.tombstone) return false
    const wasPaused = pauseIn(last).until > Date.now()
    await applied((await log.write(key, undefined)).sequence)
    return wasPaused
  }

  /** @inheritdoc */
  async extend(queue: string, pause: QueuePause): Promise<void> {
    const other = this.#extending.get(queue)
    if (other !== undefined && other.until >= pause.until) return other.done
    const done = this.#extend(queue, pause).finally(() => {
      if (this.#extending.get(queue) === mine) this.#extending.delete(queue)
    })
    const mine = { until: pause.until, done }
    this.#extending.set(queue, mine)
    return done
  }

  async #extend(queue: string, pause: QueuePause): Promise<void> {
    const { log, applied } = this.#parts
    const key = keyOf(queue)
    for (;;) {
      const last = await log.last(key)
      const isLater = last === undefined || last.tombstone || pauseIn(last).until < pause.until
      if (!isLater) return applied(last.sequence)
      try {
        return await applied((await log.write(key, contentOf(pause), last?.sequence ?? 0)).sequence)
      } catch (error) {
        // Another receiver paused the queue meanwhile, or an operator did.
        if (!isBrokerError(error, 'CONFLICT')) throw error
      }
    }
  }

  /** Applies an entry of the log; returns `false` if it is no pause. @throws TypeError for an invalid pause */
  apply(entry: KeyedEntry): boolean {
    const { key, sequence, tombstone } = entry
    if (!key.startsWith(PAUSE)) return false
    const queue = key.slice(PAUSE.length)
    const pause = tombstone ? undefined : pauseIn(entry)
    this.#parts.pauses.set(queue, pause)
    if (pause !== undefined && pause.until + KEPT_MS < Date.now()) this.#ended.set(queue, sequence)
    else this.#ended.delete(queue)
    return true
  }

  /** Handles that all entries were read again: only these keys have a value. */
  retain(keys: ReadonlySet<string>): void {
    const queues = [...keys].filter((key) => key.startsWith(PAUSE)).map((key) => key.slice(PAUSE.length))
    this.#parts.pauses.retain(new Set(queues))
    void this.#removeEnded()
  }

  async #removeEnded(): Promise<void> {
    for (const [queue, sequence] of this.#ended) {
      this.#ended.delete(queue)
      try {
        await this.#parts.log.write(keyOf(queue), undefined, sequence)
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT')) return this.#parts.failed(error)
      }
    }
  }
}

function keyOf(queue: string): string {
  return `${PAUSE}${queue}`
}

function contentOf({ until, reason, changedBy }: QueuePause): KeyedContent {
  const body = encodeText(JSON.stringify({ until: new Date(until).toISOString(), reason }))
  return { body, tags: { changed_by: changedBy } }
}

/** @throws TypeError */
function pauseIn({ key, body, tags }: KeyedEntry): QueuePause {
  const given: unknown = JSON.parse(decodeText(body) ?? '')
  const { until: end, reason = '' } = isJsonObject(given) ? given : {}
  const until = parseTimestamp(String(end))
  if (until === undefined) throw new TypeError(`${JSON.stringify(key)} is no pause`)
  return { until, reason: String(reason), changedBy: tags['changed_by'] ?? '' }
}
