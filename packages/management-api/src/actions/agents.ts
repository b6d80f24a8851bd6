import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, STRICT } from './action.ts'

export const deregisterAgent = defineAction({
  name: 'deregister_agent',
  summary: 'Removes an agent from the registry, even if another caller owns it.',
  role: 'Admin',
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
      const instance = instance_id === undefined ? '' : ` with the instance ${JSON.stringify(instance_id)}`
      throw new ManagementError(
        'AGENT_NOT_FOUND',
        `no agent ${JSON.stringify(agent_id)}${instance} is registered; /api/agents lists the agents`,
        { agent_id },
      )
    }
    return { agent_id }
  },
})
