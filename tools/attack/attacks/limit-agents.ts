import { register } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const LIMIT = 1_000
const MORE = 200

export const limitAgents: Attack = {
  name: 'limit-agents',
  about: 'agents of one caller, beyond its 1,000; another caller registers one afterwards',
  // A network address may own half.
  settings: { CONNECTORSA2_A_MAX_AGENTS: String(2 * LIMIT) },
  prepare: (scene) =>
    Promise.resolve(async () => {
      const url = 'http://127.0.0.1:9/'
      await inParallel(LIMIT + MORE, 32, async (index) => {
        await scene.tally.of(register(scene.attacker(), `attack-${index}`, url))
      })
      const made = scene.tally.countOf('200')
      scene.tally.expect(made <= LIMIT, `one caller registered ${made} agents, and ${LIMIT} are allowed`)
      const other = await scene.tally.of(register(scene.attacker(1), 'attack-other', url))
      scene.tally.expect(other?.status === 200, 'another caller could not register an agent')
    }),
}
