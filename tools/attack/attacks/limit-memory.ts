import { register } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'
import { largeCard } from './large-cards.ts'

const CARDS = 6_000

/** The agents that one attacker registers: its limit. */
const BY_ONE = 1_000

/** Cards stay in memory while their agents are registered; no other data of a caller does. */
export const limitMemory: Attack = {
  name: 'limit-memory',
  about: '6,000 cards of 60 KB by six callers, half of them of empty arrays: more than the heap of the guarded server',
  servers: ['guarded'],
  prepare: (scene) =>
    Promise.resolve(async () => {
      const cards = [largeCard(), { metadata: { values: Array.from({ length: 20_000 }, () => []) } }]
      await inParallel(scene.scaled(CARDS, 1_000), 16, async (index) => {
        if (scene.process.exited) return
        const caller = scene.attacker(Math.floor(index / BY_ONE))
        const card = cards[index % 2] ?? {}
        await scene.tally.of(register(caller, `attack-card-${index}`, 'http://127.0.0.1:9/', card))
      })
      scene.tally.expect(scene.tally.countOf('4') > 0, 'no card was refused')
    }),
}
