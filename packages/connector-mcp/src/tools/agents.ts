import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AgentCard, AgentDirectory } from '../agent-directory.ts'
import { READS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { failure, listOutcome, objectOutcome } from './results.ts'
import type { Tool, ToolOutcome } from './tool.ts'

const agentSummary = Type.Object({
  agent_id: Type.String(),
  name: Type.String(),
  skills: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), tags: Type.Array(Type.String()) })),
})

export function agentId() {
  return argument.text('The id of a registered agent, as agent_list shows it.')
}

/** For a model that has the id from elsewhere, or misspelt it. */
export function agentNotFound(agentId: string): ToolOutcome {
  return failure(
    `AGENT_NOT_FOUND: There is no agent ${JSON.stringify(agentId.slice(0, 128))}. Call agent_list to see the registered agents.`,
  )
}

export function agentList(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_list',
    title: 'List agents',
    description:
      'Lists the registered agents and their skills, all or those with a skill that carries any of the given tags. Use it to find out who can help; agent_info shows one agent in full, agent_send talks to it. ' +
      'Returns a JSON array of {agent_id, name, skills: [{id, name, tags}]}; an empty array if none matches.',
    input: Type.Object(
      {
        skill_tags: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Only agents with a skill that carries at least one of these tags; all agents if left out or empty.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({ agents: Type.Array(agentSummary) }),
    annotations: READS,
    needs: { action: 'list', patterns: ['agents'] },
    async run({ skill_tags: skillTags = [] }, { broker }) {
      const cards = await agents.list(skillTags.length > 0 ? { skillTags } : {})
      const visible = cards.filter(({ agent_id }) => broker.permits('list', 'agents', agent_id))
      return listOutcome('agents', visible.map(summary))
    },
  })
}

function summary({ agent_id, name, skills = [] }: AgentCard) {
  return { agent_id, name, skills: skills.map(({ id, name, tags = [] }) => ({ id, name, tags })) }
}

export function agentInfo(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_info',
    title: 'Show an agent card',
    description:
      'Shows the card of one agent: what it is, its version, its address and its skills in detail. Use it before the first agent_send, to know what the agent expects. ' +
      'Returns the card as a JSON object; an error if there is no such agent.',
    input: Type.Object({ agent_id: agentId() }, { additionalProperties: false }),
    output: Type.Object({ agent_id: Type.String(), name: Type.String() }),
    annotations: READS,
    needs: { action: 'list', patterns: ['agents'] },
    async run({ agent_id }, { broker }) {
      broker.authorize('list', 'agents', agent_id)
      const card = await agents.get(agent_id)
      return card ? objectOutcome(card) : agentNotFound(agent_id)
    },
  })
}
