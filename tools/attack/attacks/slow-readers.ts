import type { Attack } from '../attack.ts'
import type { HeldResponse } from '../caller.ts'
import { failureOf } from '../caller.ts'
import { inParallel } from '../tally.ts'

const READERS = 200
const EVENT_BYTES = 2_000_000

/** Readers of large events that read nothing. The kernel's buffer of each connection is not counted. */
export const slowReaders: Attack = {
  name: 'slow-readers',
  about: '200 subscribers of events of 2 MB that read nothing',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(scene.scaled(EVENT_BYTES, 500_000))
    for (let n = 0; n < 8; n++) await caller.tool('events_store_publish', { channel: 'attack.stored', body })
    return async () => {
      const most = await scene.processLimit('process_unread_bytes')
      const streams: HeldResponse[] = []
      await inParallel(scene.scaled(READERS, 20), 20, async (index) => {
        const path =
          index % 2 === 0
            ? '/ce/subscribe/events?channel=attack.live'
            : '/ce/subscribe/events-store?channel=attack.stored&events_store_type=2'
        try {
          const stream = await caller.stream(path)
          scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
          streams.push(stream)
        } catch (error) {
          scene.tally.count(failureOf(error))
        }
      })
      let peak = 0
      for (let n = 0; n < 10; n++) {
        await scene.tally.of(caller.tool('events_publish', { channel: 'attack.live', body }))
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_unread_bytes"'))
      }
      // One event that is larger than the remaining space may be written.
      const allowed = most / 2 + 2 * EVENT_BYTES
      scene.tally.expect(peak <= allowed, `${peak} bytes were unread, and ${allowed} are allowed`)
    }
  },
}
