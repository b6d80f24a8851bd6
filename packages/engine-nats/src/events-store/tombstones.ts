import { TOMBSTONE_MS } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import type { Parts } from '../parts.ts'
import type { StoredChannel } from '../channels/stored-channel.ts'

const SWEEP_MS = 60_000

/** Removes each tombstone an hour after it was written, on the first node that finds it due. */
export class Tombstones {
  readonly #parts: Parts
  #timer: NodeJS.Timeout | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.sweep(Date.now()).catch((error: unknown) => {
        const message = `removing tombstones failed: ${messageOf(error)}`
        this.#parts.settings.onProblem({ kind: 'failed', message, error })
      })
    }, SWEEP_MS)
    this.#timer.unref()
  }

  async written({ incarnation }: StoredChannel, sequence: number, timestamp: number): Promise<void> {
    const { keyedRecords, subjects } = this.#parts
    await keyedRecords.put(subjects.keyedRecord('x', incarnation, sequence), String(timestamp + TOMBSTONE_MS))
  }

  /** Removes the tombstones that are due at `now`. */
  async sweep(now: number): Promise<void> {
    const { clock, connection, keyedRecords, storedChannels, subjects } = this.#parts
    if (!connection.connected || clock.isSkewed) return
    const eventsStore = new Map(storedChannels.all('events_store').map((channel) => [channel.incarnation, channel]))
    for (const key of await keyedRecords.keys(subjects.keyedRecord('x', '>'))) {
      const [incarnation = '', sequence] = key.split('.').slice(-2)
      const channel = eventsStore.get(incarnation)
      const record = await keyedRecords.get(key)
      if (channel && record && Number(record.text) > now) continue
      // An invalid record removes nothing.
      if (channel && record && /^\d+$/.test(record.text)) {
        // A newer entry of the key may have removed it already.
        await connection.manager.streams.deleteMessage(channel.stream, Number(sequence)).catch(() => false)
      }
      await keyedRecords.remove(key)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
