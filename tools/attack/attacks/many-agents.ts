import { register } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'
import { largeCard } from './large-cards.ts'

const AGENTS = 2_000

/** The agents of one attacker: fewer than the limit of one caller. */
const BY_ONE = 500

/** The most resident memory of the server, in bytes. */
const MOST_RSS = 512 * 2 ** 20

export const manyAgents: Attack = {
  name: 'many-agents',
  about: '2,000 agents with cards of 60 KB, of four callers',
  prepare: (scene) =>
    Promise.resolve(async () => {
      const card = largeCard()
      await inParallel(scene.scaled(AGENTS, 200), 16, async (index) => {
        const caller = scene.attacker(Math.floor(index / BY_ONE))
        const url = `http://127.0.0.1:${10_000 + index}/`
        await scene.tally.of(register(caller, `attack-many-${index}`, url, card))
      })
      const rss = await scene.metric('process_resident_memory_bytes')
      scene.tally.expect(rss <= MOST_RSS, `the server has ${rss} bytes in memory, and ${MOST_RSS} are expected at most`)
    }),
}
