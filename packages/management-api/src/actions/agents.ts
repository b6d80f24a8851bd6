import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, STRICT } from './action.ts'

export const deregisterAgent = defineAction({
  name: 'deregister_agent',
  summary: 'Removes an agent from the registry, even if another caller owns it.',
  role: 'Admin',
  input: Type.Object(
    { agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }) },
    STRICT,
  ),
  data: Type.Object({ agent_id: Type.String() }),
  target: ({ agent_id }) => ({ agent: agent_id }),
  async run({ agent_id }, { services, operator }) {
    const gone = await services.agents?.deregister(agent_id, operator)
    if (gone !== true) {
      throw new ManagementError(
        'AGENT_NOT_FOUND',
        `no agent ${JSON.stringify(agent_id)} is registered; /api/agents lists the agents`,
        { agent_id },
      )
    }
    return { agent_id }
  },
})
