import { compileQuery, parameterProblemsText } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { AGENT_ID_PATTERN } from '../card/agent-card.ts'
import { RegistryError } from '../errors.ts'

const AGENT_ID = new RegExp(AGENT_ID_PATTERN)

/** The query of `GET /agents`. */
export const ListQuerySchema = Type.Object({
  skill_tags: Type.Optional(
    Type.String({ description: 'Comma-separated tags. Lists agents with a skill that has at least one of them.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'The maximum number of cards.' }),
  ),
  cursor: Type.Optional(
    Type.Refine(
      Type.String({ description: 'The last agent_id of the previous page. The page begins after it.' }),
      (cursor) => AGENT_ID.test(cursor),
      () => 'the last agent_id of the previous page',
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
  /** The last agent_id of the previous page; undefined for the first page. */
  readonly after: string | undefined
}

/**
 * Parses the query of `GET /agents`. Rejects unknown and repeated parameters; ignores empty tags.
 * @throws RegistryError PARAMETER_INVALID with all problems
 */
export function readListQuery(query: string): ListQuery {
  const { skill_tags: tags = '', limit, cursor } = read(query)
  const skillTags = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return { skillTags, limit: limit ?? Number.MAX_SAFE_INTEGER, after: cursor }
}
