import { register } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { outcomeOf } from '../caller.ts'
import { inParallel } from '../tally.ts'
import { largeCard } from './large-cards.ts'

const CARDS = 12_000

/** Agents that one attacker registers: its limit. */
const BY_ONE = 1_000

/** Cards are in memory for as long as their agents are registered, and nothing else that a caller leaves is. */
export const limitMemory: Attack = {
  name: 'limit-memory',
  about: '12,000 cards of 60 KB by twelve callers: more than the heap of the guarded server',
  servers: ['guarded'],
  prepare: (scene) =>
    Promise.resolve(async () => {
      const card = largeCard()
      let refused = 0
      await inParallel(scene.scaled(CARDS, 500), 16, async (index) => {
        if (refused > 200 || scene.process.exited) return
        const caller = scene.attacker(Math.floor(index / BY_ONE))
        const answer = await scene.tally.of(register(caller, `attack-card-${index}`, 'http://127.0.0.1:9/', card))
        if (answer === undefined || outcomeOf(answer) !== '200') refused++
      })
    }),
}
