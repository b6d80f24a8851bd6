import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const LEVELS = 5_000
const DEEP = `${'['.repeat(LEVELS)}${']'.repeat(LEVELS)}`
const REPLIES = [
  `{"jsonrpc":"2.0","id":1,"result":${DEEP}}`,
  `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"deep","data":${DEEP}}}`,
  `${'{"a":'.repeat(LEVELS)}1${'}'.repeat(LEVELS)}`,
]

/** Replies of agents, nested 5,000 levels deep, on every route to an agent. */
export const deepAgentReplies: Attack = {
  name: 'deep-agent-replies',
  about: 'replies of agents nested 5,000 levels deep, through agent_send, agent_query and /a2a',
  async prepare(scene) {
    const caller = scene.attacker()
    for (const [index, reply] of REPLIES.entries()) {
      const agent = scene.use(await HostileAgent.answering(reply))
      await registered(caller, `attack-deep-${index}`, agent.url)
    }
    return async () => {
      await inParallel(scene.scaled(200, 10), 8, async (index) => {
        for (let agent = 0; agent < REPLIES.length; agent++) {
          const agent_id = `attack-deep-${agent}`
          await scene.tally.of(caller.tool('agent_send', { agent_id, message: 'x' }))
          await scene.tally.of(caller.tool('agent_query', { agent_id, method: 'tasks/get' }))
          const call = { jsonrpc: '2.0', id: index, method: 'message/send', params: {} }
          await scene.tally.of(caller.post(`/a2a/${agent_id}`, call))
        }
      })
      const invalid = scene.tally.countOf('200 INVALID_RESPONSE') + scene.tally.countOf('200 -32004')
      const all = scene.tally.countOf('')
      scene.tally.expect(invalid === all, `${all - invalid} of ${all} replies were not refused as invalid`)
    }
  },
}
