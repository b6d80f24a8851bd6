import type { Scene } from './scene.ts'
import { inParallel } from './tally.ts'

/** The channels that one attacker creates if an attack needs many: fewer than the limit of one caller. */
const BY_ONE = 800

/**
 * Creates event channels, with as many attackers as needed.
 * @param nameOf The name of each; they begin with the prefix of the attackers
 */
export async function makeChannels(scene: Scene, count: number, nameOf: (index: number) => string): Promise<void> {
  await inParallel(count, 32, async (index) => {
    const caller = scene.attacker(1 + Math.floor(index / BY_ONE))
    const { status, text } = await caller.tool('events_publish', { channel: nameOf(index), body: 'x' })
    if (status !== 200 || text.includes('"isError":true')) {
      throw new Error(`a channel was not created: ${status} ${text.slice(0, 300)}`)
    }
  })
}
