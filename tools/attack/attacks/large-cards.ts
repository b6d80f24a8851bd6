import { register } from '../agents.ts'
import type { Attack } from '../attack.ts'
import type { Scene } from '../scene.ts'
import { during, inParallel } from '../tally.ts'

/** A card may be 64 KiB. */
const CARD_BYTES = 60_000

/** The agents that one attacker registers: fewer than the limit of one caller. */
const BY_ONE = 900

/** The largest list of agents in bytes, including JSON-RPC and the tool's text, which escape quotes twice. */
const MOST_LIST_BYTES = 4 * 2 ** 20 * 2.5

export function largeCard(): object {
  const skills = Array.from({ length: 20 }, (_, index) => ({
    id: `s${index}`,
    name: 's'.repeat(CARD_BYTES / 40),
    tags: ['attack'],
  }))
  return { description: 'd'.repeat(2_000), skills, metadata: { fill: 'm'.repeat(CARD_BYTES / 2 - 6_000) } }
}

async function registerMany(scene: Scene, count: number): Promise<void> {
  const card = largeCard()
  await inParallel(count, 16, async (index) => {
    const caller = scene.attacker(Math.floor(index / BY_ONE))
    const answer = await register(caller, `attack-card-${index}`, 'http://127.0.0.1:9/', card)
    // Cards may take a quarter of the heap limit, those of one caller half of that.
    if (answer.status !== 200 && !answer.text.includes('AGENT_LIMIT')) {
      throw new Error(`card ${index}: ${answer.status} ${answer.text.slice(0, 300)}`)
    }
  })
}

export const largeCards: Attack = {
  name: 'large-cards',
  about: '3,000 cards of 60 KB, and then agent_list and GET /agents, eight at a time',
  async prepare(scene) {
    await registerMany(scene, scene.scaled(3_000, 150))
    return async () => {
      const caller = scene.attacker()
      let largest = 0
      await during(scene.floodMs, 8, async (index) => {
        const path = index % 4 === 2 ? '/agents?skill_tags=attack' : '/agents'
        const asked = index % 2 === 0 ? caller.tool('agent_list', {}) : caller.ask('GET', path)
        const answer = await scene.tally.of(asked)
        largest = Math.max(largest, answer?.text.length ?? 0)
      })
      scene.tally.expect(largest <= MOST_LIST_BYTES, `a list of agents had ${largest} bytes`)
    }
  },
}
