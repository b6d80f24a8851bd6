import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, STRICT } from './action.ts'

export const deregisterAgent = defineAction({
  name: 'deregister_agent',
  summary: 'Removes an agent from the registry, even if another caller owns it.',
  input: Type.Object(
    {
      agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }),
      instance_id: Type.Optional(
        Type.String({
          description: 'The instance to remove; without it the agent is removed with all its instances.',
          minLength: 1,
          maxLength: 128,
        }),
      ),
    },
    STRICT,
  ),
  data: Type.Object({ agent_id: Type.String() }),
  target: ({ agent_id }) => ({ agent: agent_id }),
  async run({ agent_id, instance_id }, { services, operator }) {
    const gone = await services.agents?.deregister(agent_id, operator, instance_id)
    if (gone !== true) {
      throw agentNotFound(
        agent_id,
        instance_id === undefined ? '' : ` with the instance ${JSON.stringify(instance_id)}`,
      )
    }
    return { agent_id }
  },
})

export const callAgent = defineAction({
  name: 'call_agent',
  summary:
    "Sends a text message to an agent in the name of the operator, whose role decides instead of the policy, and answers with the agent's events as they come, as GET /a2a/{agent_id}/stream does. The call ends after 170 s, or when the client disconnects.",
  input: Type.Object(
    {
      agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }),
      message: argument.text('The text of the message.'),
      context_id: Type.Optional(
        Type.String({
          description: 'The contextId of the conversation that the message continues; without it a new one begins.',
          minLength: 1,
          maxLength: 256,
        }),
      ),
      timeout_seconds: argument.timeoutSeconds('the beginning of the answer', 30),
    },
    STRICT,
  ),
  data: Type.String({
    description:
      'Server-sent events: `task.status`, `task.artifact`, `message`; the last one is `task.done` or `task.error`. Their data is JSON: `stream_id`, `type`, `payload`.',
  }),
  answersEvents: true,
  target: ({ agent_id }) => ({ agent: agent_id }),
  async run({ agent_id: agentId, message, context_id: contextId, timeout_seconds: seconds = 30 }, call) {
    const { hold, services, operator, signal, maxWaitMs } = call
    call.becomeStream()
    const answer = await services.agentCalls?.open({
      agentId,
      operator,
      text: message,
      contextId,
      timeoutMs: Math.min(seconds * 1000, maxWaitMs),
      signal: AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)]),
      hold,
    })
    if (answer === undefined) throw agentNotFound(agentId)
    if ('rpcCode' in answer) {
      const { message: reason, rpcCode } = answer
      throw new ManagementError('AGENT_CALL_FAILED', reason, { agent_id: agentId, json_rpc_code: rpcCode })
    }
    call.answerWith(answer)
    return answer.id
  },
  detail: (id) => `stream ${id} opened`,
})

function agentNotFound(agentId: string, instance = ''): ManagementError {
  return new ManagementError(
    'AGENT_NOT_FOUND',
    `no agent ${JSON.stringify(agentId)}${instance} is registered; /api/agents lists the agents`,
    { agent_id: agentId },
  )
}
