import type { Attack } from '../attack.ts'
import type { HeldResponse } from '../caller.ts'
import { failureOf } from '../caller.ts'

const MOST = 32 * 2 ** 20
const EVENT_BYTES = 4_000_000
const READERS = 40

/** A reader that reads nothing is cut off after 30 s, and after 30 s more for data that was written before. */
const SLOW_MS = 60_000
const LATE_MS = 15_000

/**
 * With 64 MiB of unread bytes in total, a caller has 32. Streams beyond that are cut off at once, the others after a
 * minute without a read.
 */
export const limitUnread: Attack = {
  name: 'limit-unread',
  about: 'readers of one caller that leave 4 MB each unread, beyond its 32 MiB; all are cut off after a minute',
  settings: { LIMITS_PROCESS_UNREAD_BYTES: String(2 * MOST) },
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(EVENT_BYTES)
    for (let n = 0; n < 3; n++) await caller.tool('events_store_publish', { channel: 'attack.stored', body })
    return async () => {
      let peak = 0
      const unread = async (): Promise<number> => {
        const bytes = await scene.metric('broker_limit_use', 'limit="process_unread_bytes"')
        peak = Math.max(peak, bytes)
        return bytes
      }
      const streams: HeldResponse[] = []
      for (let n = 0; n < READERS; n++) {
        try {
          const stream = await caller.stream('/ce/subscribe/events-store?channel=attack.stored&events_store_type=2')
          scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
          streams.push(stream)
        } catch (error) {
          scene.tally.count(failureOf(error))
        }
        await unread()
      }
      const end = performance.now() + scene.scaled(SLOW_MS + LATE_MS, 1_000)
      let left = 0
      while (performance.now() < end) {
        left = await unread()
        if (left === 0) break
        await new Promise((resolve) => setTimeout(resolve, 250))
      }
      scene.tally.count(`at most ${Math.round(peak / 2 ** 20)} MiB unread`)
      // The event that exceeded the limit is already written.
      const allowed = MOST + 2 * EVENT_BYTES
      scene.tally.expect(peak <= allowed, `${peak} bytes were unread, and ${allowed} are allowed`)
      scene.tally.expect(scene.scaled(left, 0) === 0, `${left} bytes are unread after ${(SLOW_MS + LATE_MS) / 1_000} s`)
      for (const stream of streams) stream.close()
    }
  },
}
