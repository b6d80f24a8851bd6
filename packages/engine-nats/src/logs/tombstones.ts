import { messageOf } from '@signalbox/broker-core'
import type { Parts } from '../parts.ts'
import type { StoredChannel } from '../channels/stored-channel.ts'

/** How long a tombstone is seen, in milliseconds. */
const TOMBSTONE_MS = 60 * 60_000
const SWEEP_MS = 60_000

/** Removes tombstones an hour after they were written, on whichever node comes first. */
export class Tombstones {
  readonly #parts: Parts
  #timer: NodeJS.Timeout | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.sweep(Date.now()).catch((error: unknown) => {
        const message = `removing tombstones: ${messageOf(error)}`
        this.#parts.settings.onProblem({ kind: 'failed', message, error })
      })
    }, SWEEP_MS)
    this.#timer.unref()
  }

  async written({ incarnation }: StoredChannel, sequence: number, timestamp: number): Promise<void> {
    const { notes, subjects } = this.#parts
    await notes.put(subjects.note('x', incarnation, sequence), String(timestamp + TOMBSTONE_MS))
  }

  /** Removes what was due by then. */
  async sweep(now: number): Promise<void> {
    const { clock, connection, notes, storedChannels, subjects } = this.#parts
    if (!connection.connected || clock.isSkewed) return
    const logs = new Map(storedChannels.all('events_store').map((channel) => [channel.incarnation, channel]))
    for (const key of await notes.keys(subjects.note('x', '>'))) {
      const [incarnation = '', sequence] = key.split('.').slice(-2)
      const channel = logs.get(incarnation)
      const note = await notes.get(key)
      if (channel && note && Number(note.text) > now) continue
      // A note that is no time removes nothing.
      if (channel && note && /^\d+$/.test(note.text)) {
        // An entry that took its place has removed it already.
        await connection.manager.streams.deleteMessage(channel.stream, Number(sequence)).catch(() => false)
      }
      await notes.remove(key)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
