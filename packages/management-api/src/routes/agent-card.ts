import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineManagementRoute, STRICT } from './route.ts'

export const agentCardRoute = defineManagementRoute({
  path: '/api/agent_card',
  summary: 'The card of a registered agent, as its owner registered it.',
  query: Type.Object(
    { agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }) },
    STRICT,
  ),
  data: Type.Object({
    agent_id: Type.String(),
    card: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'The card, including fields that the registry does not know.',
    }),
  }),
  async run({ agent_id }, { services }) {
    const card = await services.agents?.card?.(agent_id)
    if (card !== undefined) return { agent_id, card: { ...card } }
    throw new ManagementError(
      'AGENT_NOT_FOUND',
      `no agent ${JSON.stringify(agent_id)} is registered; /api/agents lists the agents`,
      { agent_id },
    )
  },
})
