import { compileQuery, parameterProblemsText } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { AGENT_ID_PATTERN } from '../card/agent-card.ts'
import { RegistryError } from '../errors.ts'

const AGENT_ID = new RegExp(AGENT_ID_PATTERN)

/** The query of `GET /agents` (R3). */
export const ListQuerySchema = Type.Object({
  skill_tags: Type.Optional(Type.String({ description: 'Tags with commas between them: any of them.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'The most cards.' })),
  cursor: Type.Optional(
    Type.Refine(
      Type.String({ description: 'The agent_id that the page before ended with; the page begins after it.' }),
      (cursor) => AGENT_ID.test(cursor),
      () => 'the agent_id that the page before ended with',
    ),
  ),
})

const read = compileQuery(ListQuerySchema, (problems) => {
  const message = `invalid query parameters: ${parameterProblemsText(problems)}`
  return new RegistryError('PARAMETER_INVALID', message, problems)
})

export interface ListQuery {
  readonly skillTags: readonly string[]
  readonly limit: number
  /** Where the page before ended. */
  readonly after: string | undefined
}

/**
 * Reads the query of `GET /agents`, strictly. Empty tags are none.
 * @throws RegistryError PARAMETER_INVALID with every problem
 */
export function readListQuery(query: string): ListQuery {
  const { skill_tags: tags = '', limit, cursor } = read(query)
  const skillTags = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return { skillTags, limit: limit ?? Number.MAX_SAFE_INTEGER, after: cursor }
}
