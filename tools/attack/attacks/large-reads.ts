import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const MESSAGES = 60
const BYTES = 9_000_000

/** A read of many large messages must not read more of them than its answer can hold. */
export const largeReads: Attack = {
  name: 'large-reads',
  about: 'queue_peek of a queue with 60 messages of 9 MB, alone and three at a time',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(BYTES)
    await inParallel(MESSAGES, 4, () => caller.tool('queue_send', { channel: 'attack.large', body }))
    return async () => {
      const args = { channel: 'attack.large', max_messages: 100 }
      await scene.tally.of(caller.tool('queue_peek', args))
      await inParallel(scene.scaled(12, 3), 3, () => scene.tally.of(caller.tool('queue_peek', args)))
      scene.tally.expect(scene.tally.countOf('200 ') === 0, 'a peek failed')
    }
  },
}
