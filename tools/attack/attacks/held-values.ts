import { toolCall } from '../../harness/mcp.ts'
import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

/**
 * JSON texts whose values take twenty times the memory of their text, as large as a body may be, as many as the server
 * reads.
 */
const FILLS: readonly (readonly [fill: string, bytes: number, calls: number])[] = [
  ['{}', 9_900_000, 6],
  ['[[[[]]]]', 9_900_000, 6],
  ['{}', 1_800_000, 40],
  ['[]', 1_800_000, 40],
  ['"ab"', 9_900_000, 6],
]

function manyOf(fill: string, bytes: number): string {
  const count = Math.floor(bytes / (fill.length + 1))
  return `[${Array.from({ length: count }, () => fill).join(',')}]`
}

/** Calls that wait for a silent agent, with arguments that are small as text and large as values. */
export const heldValues: Attack = {
  name: 'held-values',
  about: 'waiting calls of 9.9 MB whose JSON is millions of empty objects and arrays',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(await HostileAgent.start((request) => void request.resume()))
    await registered(caller, 'attack-silent', agent.url)
    return async () => {
      for (const [fill, bytes, calls] of FILLS) {
        const values = manyOf(fill, scene.scaled(bytes, bytes / 4))
        const message = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"configuration":{"timeout":5},"x":${values}}}`
        const query = toolCall('agent_query', {
          agent_id: 'attack-silent',
          method: 'tasks/get',
          params: { configuration: { timeout: 5 } },
        }).replace('"timeout":5}', `"timeout":5},"x":${values}`)
        await Promise.all(
          Array.from({ length: calls }, async (_, index) => {
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
