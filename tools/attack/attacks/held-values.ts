import { toolCall } from '../../harness/mcp.ts'
import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

const BYTES = 9_900_000
const CALLS = 6

/** Texts of JSON whose values take twenty times their bytes. */
const FILLS = ['{}', '[]', '[[[[]]]]', '{"":0}']

function manyOf(fill: string, bytes: number): string {
  const count = Math.floor(bytes / (fill.length + 1))
  return `[${Array.from({ length: count }, () => fill).join(',')}]`
}

/** Calls that wait for an agent that does not answer, with arguments that are small as text and large as values. */
export const heldValues: Attack = {
  name: 'held-values',
  about: 'waiting calls of 9.9 MB whose JSON is millions of empty objects and arrays',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(await HostileAgent.start((request) => void request.resume()))
    await registered(caller, 'attack-silent', agent.url)
    const bytes = scene.scaled(BYTES, 1_000_000)
    return async () => {
      for (const fill of FILLS) {
        const values = manyOf(fill, bytes)
        const message = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"configuration":{"timeout":5},"x":${values}}}`
        const query = toolCall('agent_query', {
          agent_id: 'attack-silent',
          method: 'tasks/get',
          params: { configuration: { timeout: 5 } },
        }).replace('"timeout":5}', `"timeout":5},"x":${values}`)
        await Promise.all(
          Array.from({ length: CALLS }, async (_, index) => {
            try {
              const asked = index % 2 === 0 ? caller.post('/mcp', query) : caller.post('/a2a/attack-silent', message)
              scene.tally.count(outcomeOf(await asked))
            } catch (error) {
              scene.tally.count(failureOf(error))
            }
          }),
        )
      }
    }
  },
}
