import type { Attack } from '../attack.ts'

const EVENT_BYTES = 8_000_000
const PATH = '/ce/subscribe/events-store?channel=attack.group&group=g&events_store_type=2'

/** Subscribers of a group that receive 8 MB, read nothing and disconnect; the next subscriber gets the event. */
export const groupMember: Attack = {
  name: 'group-member',
  about: 'subscribers of a group that disconnect with 8 MB unread',
  async prepare(scene) {
    const caller = scene.attacker()
    await caller.tool('events_store_publish', { channel: 'attack.group', body: 'x'.repeat(EVENT_BYTES) })
    return async () => {
      for (let n = 0; n < scene.scaled(20, 3); n++) {
        const streams = await Promise.all([caller.stream(PATH), caller.stream(PATH), caller.stream(PATH)])
        await new Promise((resolve) => setTimeout(resolve, 100))
        for (const stream of streams) {
          scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
          stream.close()
        }
      }
      const last = await caller.stream(PATH)
      setTimeout(() => last.close(), scene.scaled(5_000, 2_000))
      const text = await last.rest()
      scene.tally.expect(text.length > EVENT_BYTES, `the subscriber that read got ${text.length} bytes of the event`)
    }
  },
}
