import { compileQuery, parameterProblemsText } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { RegistryError } from '../errors.ts'
import type { AgentFilter } from '../options.ts'

/** The query of `GET /agents` (R3). */
export const ListQuerySchema = Type.Object({
  skill_tags: Type.Optional(Type.String({ description: 'Tags with commas between them: any of them.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'The most cards.' })),
})

const read = compileQuery(ListQuerySchema, (problems) => {
  const message = `invalid query parameters: ${parameterProblemsText(problems)}`
  return new RegistryError('PARAMETER_INVALID', message, problems)
})

/**
 * Reads the query of `GET /agents`, strictly. Empty tags are none.
 * @throws RegistryError PARAMETER_INVALID with every problem
 */
export function readListQuery(query: string): AgentFilter {
  const { skill_tags: tags = '', limit } = read(query)
  const skillTags = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return { skillTags, ...(limit === undefined ? {} : { limit }) }
}
