import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const LIMIT = 1_000
const MORE = 200

const TOOLS = ['queue_send', 'events_publish', 'events_store_publish'] as const

export const limitChannels: Attack = {
  name: 'limit-channels',
  about: 'new channels of one caller, beyond its 1,000; the other caller creates one afterwards',
  // A network address may use half.
  settings: { MAX_CHANNELS: String(2 * LIMIT) },
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.attacker()
      await inParallel(LIMIT + MORE, 32, async (index) => {
        const tool = TOOLS[index % TOOLS.length] ?? 'queue_send'
        await scene.tally.of(caller.tool(tool, { channel: `attack.${index}`, body: 'x' }))
      })
      const made = scene.tally.countOf('200') - scene.tally.countOf('200 ')
      scene.tally.expect(made <= LIMIT, `one caller made ${made} channels, and ${LIMIT} are allowed`)
      const other = await scene.tally.of(scene.attacker(1).tool('queue_send', { channel: 'attack.other', body: 'x' }))
      scene.tally.expect(other?.text.includes('"isError":false') === true, 'another caller could not create a channel')
    }),
}
