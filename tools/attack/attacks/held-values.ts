import { MAX_JSON_PARTS } from '@signalbox/http-kit'

import { toolCall } from '../../harness/mcp.ts'
import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

/** The bytes of the largest body, and the values that just fit into the limit of one JSON text. */
const LARGEST_BYTES = 9_900_000
const MOST_VALUES = MAX_JSON_PARTS - 100

/**
 * JSON texts whose values take twenty times the memory of their text: as large as a body may be, and with as many
 * values as the server reads.
 */
const FILLS: readonly (readonly [fill: string, count: number, calls: number])[] = [
  ['{}', LARGEST_BYTES / 3, 6],
  ['[[[[]]]]', LARGEST_BYTES / 9, 6],
  ['{}', MOST_VALUES, 40],
  ['[]', MOST_VALUES, 40],
  ['[[[[]]]]', MOST_VALUES / 4, 40],
  ['"ab"', MOST_VALUES, 40],
]

function manyOf(fill: string, count: number): string {
  return `[${Array.from({ length: Math.floor(count) }, () => fill).join(',')}]`
}

/** Calls that wait for a silent agent, with arguments that are small as text and large as values. */
export const heldValues: Attack = {
  name: 'held-values',
  about: 'waiting calls of 9.9 MB whose JSON is millions of empty objects and arrays, and as many as are read',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(await HostileAgent.start((request) => void request.resume()))
    await registered(caller, 'attack-silent', agent.url)
    return async () => {
      for (const [fill, count, calls] of FILLS) {
        const values = manyOf(fill, count)
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
