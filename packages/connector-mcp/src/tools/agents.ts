import { Buffer } from 'node:buffer'
import { setImmediate as otherWork } from 'node:timers/promises'

import { shownText } from '@signalbox/broker-core/internal'
import { argument, shownValue } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AgentCard, AgentDirectory, AgentFilter } from '../agent-directory.ts'
import { READS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { confirmation, failure, objectOutcome } from './results.ts'
import type { Tool, ToolContext, ToolOutcome } from './tool.ts'

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
    `AGENT_NOT_FOUND: There is no agent ${shownText(agentId, 128)}. Call agent_list to see the registered agents.`,
  )
}

export function agentList(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_list',
    title: 'List agents',
    description:
      'Lists the registered agents and their skills, all or those with a skill that carries any of the given tags. Use it to find out who can help; agent_info shows one agent in full, agent_send talks to it. ' +
      'Returns a JSON array of {agent_id, name, skills: [{id, name, tags}]}, in the order of agent_id; an empty array if none matches. ' +
      'One answer holds at most about 4 MiB: for the agents after it, call again with cursor set to the last agent_id.',
    input: Type.Object(
      {
        skill_tags: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Only agents with a skill that carries at least one of these tags; all agents if left out or empty.',
          }),
        ),
        limit: Type.Optional(
          Type.Integer({
            description: 'The most agents to return, 1 or more; as many as an answer holds if left out.',
            minimum: 1,
            maximum: Number.MAX_SAFE_INTEGER,
          }),
        ),
        cursor: Type.Optional(
          argument.text('Only agents after this agent_id: the one that the answer before ended with.', {
            minLength: 1,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      agents: Type.Array(agentSummary),
      next_cursor: Type.Optional(
        Type.String({ description: 'Present when there are more agents: give it as cursor to get them.' }),
      ),
    }),
    annotations: READS,
    needs: { action: 'list', patterns: ['agents'] },
    rule: ({ skill_tags }) =>
      skill_tags !== undefined && skill_tags.length > MAX_TAGS
        ? { argument: 'skill_tags', given: shownValue(skill_tags), allowed: `an array of at most ${MAX_TAGS} strings` }
        : undefined,
    async run({ skill_tags: skillTags = [], limit = Infinity, cursor }, context) {
      const tags = skillTags.length > 0 ? { skillTags: [...new Set(skillTags)] } : {}
      const { summaries, next } = await listPage(agents, { ...tags, limit: AT_ONCE }, limit, cursor, context)
      const text = `[${summaries.join(',')}]`
      const more = next === undefined ? '' : `,"next_cursor":${JSON.stringify(next)}`
      return confirmation(text, `{"agents":${text}${more}}`)
    },
  })
}

/** Nobody looks for more, and each costs a search. */
const MAX_TAGS = 1_000

/** The most bytes of one answer, which has the list twice: as text, and as structured content. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** Agents that are looked at, and bytes that are printed, before other requests have their turn. */
const AT_ONCE = 50
const BYTES_AT_ONCE = 256 * 1024

/** Prints the agents that the caller may see, as many as are asked for and as an answer holds; the rest is not printed. */
async function listPage(
  agents: AgentDirectory,
  filter: AgentFilter,
  limit: number,
  after: string | undefined,
  { broker, signal }: ToolContext,
): Promise<{ readonly summaries: readonly string[]; readonly next: string | undefined }> {
  const summaries: string[] = []
  let bytes = 0
  let pauseAt = BYTES_AT_ONCE
  let last = after
  let seen = after
  for (;;) {
    const cards = await agents.list({ ...filter, ...(seen === undefined ? {} : { after: seen }) })
    for (const card of cards) {
      seen = card.agent_id
      if (!broker.permits('list', 'agents', seen)) continue
      if (summaries.length >= limit) return { summaries, next: last }
      const text = JSON.stringify(summary(card))
      bytes += Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text))
      if (bytes > MAX_PAGE_BYTES && summaries.length > 0) return { summaries, next: last }
      summaries.push(text)
      last = seen
      if (bytes > pauseAt) {
        pauseAt = bytes + BYTES_AT_ONCE
        await otherWork()
      }
    }
    if (cards.length < filter.limit || signal.aborted) return { summaries, next: undefined }
    await otherWork()
  }
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
