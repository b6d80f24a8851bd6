import { Buffer } from 'node:buffer'

import type { AgentCard, AgentDirectory, AgentPage } from '@signalbox/broker-core/ports'
import { closest, plausibleMistakes, shownText } from '@signalbox/broker-core/internal'
import type { Steps } from '@signalbox/http-kit'
import { argument, fairTurns, shownValue, TextParts } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineTool, READS } from './define-tool.ts'
import type { LaterPages } from './results.ts'
import { failure, laterPagesOutput, listOutcome, MAX_LISTED, objectOutcome } from './results.ts'
import type { Tool, ToolContext, ToolOutcome } from './tool.ts'

const skillSummary = Type.Object({ id: Type.String(), name: Type.String(), tags: Type.Array(Type.String()) })
const agentSummary = Type.Object({
  agent_id: Type.String(),
  name: Type.String(),
  skills: Type.Array(Type.Partial(skillSummary)),
})

export function agentId() {
  return argument.text('An agent_id from agent_list.')
}

/** The agents among which a misspelt one is looked for. */
const MAX_COMPARED = 1_000

/** Returns the outcome for an unknown id, which a model may have misspelled, or taken from the name of an agent. */
export async function agentNotFound(
  agents: AgentDirectory,
  agentId: string,
  { broker }: ToolContext,
): Promise<ToolOutcome> {
  const cards = await agents.list({ limit: MAX_COMPARED })
  const seen = cards.filter((card) => broker.permits('list', 'agents', card.agent_id))
  const named = seen.find(({ name }) => name.toLowerCase() === agentId.toLowerCase())?.agent_id
  const ids = seen.map((card) => card.agent_id)
  const meant = named ?? closest(agentId, ids, plausibleMistakes(agentId))
  return failure(
    `AGENT_NOT_FOUND: There is no agent ${shownText(agentId, 128)}.${meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`} Call agent_list to see the registered agents.`,
  )
}

export function agentList(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_list',
    title: 'List agents',
    summary:
      'Lists the agents that agent_send can reach; agent_info shows one in full. ' +
      'Returns a JSON array of {agent_id, name, skills: [{id, name, tags}]}.',
    input: Type.Object(
      {
        skill_tags: Type.Optional(
          Type.Array(Type.String(), {
            description: 'Only agents with one of these skill tags.',
          }),
        ),
        limit: Type.Optional(
          Type.Integer({
            description: 'The page size.',
            minimum: 1,
            maximum: Number.MAX_SAFE_INTEGER,
          }),
        ),
        cursor: Type.Optional(argument.text('cursor of the previous page.', { minLength: 1 })),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      agents: Type.Array(Type.Partial(agentSummary)),
      ...laterPagesOutput,
    }),
    annotations: READS,
    needs: { action: 'list', patterns: ['agents'] },
    rule: ({ skill_tags }) =>
      skill_tags !== undefined && skill_tags.length > MAX_TAGS
        ? { argument: 'skill_tags', given: shownValue(skill_tags), allowed: `an array of at most ${MAX_TAGS} strings` }
        : undefined,
    async run({ skill_tags: skillTags = [], limit = MAX_LISTED, cursor }, context) {
      context.broker.requireCredentials('list', 'agents')
      const filter = { skillTags: skillTags.length > 0 ? [...new Set(skillTags)] : undefined, limit: AT_ONCE }
      const { list, later } = await listPage(agents, filter, limit, cursor, context)
      return listOutcome('agents', list, later)
    },
  })
}

/** The most tags of one call: each tag costs a search. */
const MAX_TAGS = 1_000

/** The most bytes of one answer, which contains the list twice: as text and as structured content. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** The most agents of later pages that are counted. */
const MAX_COUNTED = 10_000

/** Agents that are read, and bytes that are formatted, before the turns of other callers. */
const AT_ONCE = 50
const BYTES_AT_ONCE = 256 * 1024

/**
 * Formats the agents that the caller may see, up to `limit` and up to the size of one answer, and counts those on later
 * pages.
 */
async function listPage(
  agents: AgentDirectory,
  filter: AgentPage,
  limit: number,
  after: string | undefined,
  { broker, signal }: ToolContext,
): Promise<{ readonly list: string | TextParts; readonly later: LaterPages | undefined }> {
  const { account, clientId } = broker.caller
  const list = new TextParts().add('[')
  let listed = 0
  let bytes = 0
  let pauseAt = BYTES_AT_ONCE
  let last = after ?? ''
  let seen = after
  let leftOut = 0
  function* add(cards: readonly AgentCard[]): Steps<void> {
    for (const card of cards) {
      seen = card.agent_id
      if (!broker.permits('list', 'agents', seen)) continue
      if (leftOut > 0 || listed >= limit) {
        if (++leftOut === MAX_COUNTED) break
        continue
      }
      const text = JSON.stringify(summary(card))
      bytes += Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text))
      if (bytes > MAX_PAGE_BYTES && listed > 0) {
        leftOut++
        continue
      }
      list.add(listed++ === 0 ? text : `,${text}`)
      last = seen
      if (bytes > pauseAt) {
        pauseAt = bytes + BYTES_AT_ONCE
        yield
      }
    }
  }
  for (;;) {
    const cards = await agents.list({ ...filter, after: seen })
    await fairTurns.steps(account ?? clientId, add(cards))
    if (cards.length < filter.limit || leftOut === MAX_COUNTED || signal.aborted) {
      return { list: list.add(']').shortest, later: leftOut === 0 ? undefined : { cursor: last, leftOut } }
    }
  }
}

function summary({ agent_id, name, skills = [] }: AgentCard) {
  return { agent_id, name, skills: skills.map(({ id, name, tags = [] }) => ({ id, name, tags })) }
}

export function agentInfo(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_info',
    title: 'Show an agent card',
    summary:
      'Returns the card of an agent as a JSON object. Read it before the first agent_send, to learn which requests the agent expects.',
    input: Type.Object({ agent_id: agentId() }, { additionalProperties: false }),
    output: Type.Object({ agent_id: Type.String(), name: Type.String() }),
    annotations: READS,
    needs: { action: 'list', patterns: ['agents'] },
    async run({ agent_id }, context) {
      context.broker.authorize('list', 'agents', agent_id)
      const card = await agents.get(agent_id)
      return card ? objectOutcome(card) : agentNotFound(agents, agent_id, context)
    },
  })
}
