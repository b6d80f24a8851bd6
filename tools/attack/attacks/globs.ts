import type { Attack } from '../attack.ts'
import { makeChannels } from '../channels.ts'
import { during } from '../tally.ts'

/** The longest name is 255 bytes. */
const NAME = `attack${'a'.repeat(240)}`

const PATTERNS = [
  `${'*a'.repeat(120)}b`,
  `attack${'*a'.repeat(500)}*b`,
  `${'?*'.repeat(120)}b`,
  `attack${'a*?'.repeat(80)}z`,
  `${'*'.repeat(10_000)}b`,
  '*aa'.repeat(1_000),
]

export const globs: Attack = {
  name: 'globs',
  about: 'patterns of channel_list and of statistics that backtrack, over 2,000 long names',
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(2_000, 200), (index) => `${NAME}${index}`)
    return async () => {
      const caller = scene.attacker()
      await during(scene.floodMs, 4, async (index) => {
        const pattern = PATTERNS[index % PATTERNS.length] ?? ''
        await scene.tally.of(caller.tool('channel_list', { pattern }))
        const path = `${scene.api}/v1/stats/channels?channel=${encodeURIComponent(pattern)}`
        await scene.tally.of(scene.viewer.ask('GET', path))
      })
    }
  },
}
