import { shown } from '../card/card-problems.ts'
import { RegistryError } from '../errors.ts'
import type { AgentFilter } from '../options.ts'

interface ParameterProblem {
  readonly parameter: string
  readonly given: string
  readonly allowed: string
}

const ALLOWED = {
  skill_tags: 'tags with commas between them, given once',
  limit: 'a whole number of at least 1, given once',
} as const

/**
 * Reads the query of `GET /agents`: `skill_tags` and `limit`, strictly (R3). Empty tags are none.
 * @throws RegistryError PARAMETER_INVALID with every problem
 */
export function readListQuery(query: string): AgentFilter {
  const given = new URLSearchParams(query)
  const problems: ParameterProblem[] = []
  for (const parameter of new Set(given.keys())) {
    const values = given.getAll(parameter)
    if (parameter !== 'skill_tags' && parameter !== 'limit') {
      problems.push({ parameter: shown(parameter), given: 'unknown', allowed: 'one of skill_tags and limit' })
    } else if (values.length > 1) {
      problems.push({ parameter, given: `given ${values.length} times`, allowed: ALLOWED[parameter] })
    }
  }
  const limit = given.get('limit')
  if (limit !== null && !/^0*[1-9]\d*$/.test(limit)) {
    problems.push({ parameter: 'limit', given: shown(limit), allowed: ALLOWED.limit })
  }
  if (problems.length > 0) throw invalidParameters(problems)
  const skillTags = (given.get('skill_tags') ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return { skillTags, ...(limit === null ? {} : { limit: Number(limit) }) }
}

function invalidParameters(problems: readonly ParameterProblem[]): RegistryError {
  const texts = problems.map(({ parameter, given, allowed }) => `${parameter} is ${given}; it must be ${allowed}`)
  return new RegistryError('PARAMETER_INVALID', `invalid query parameters: ${texts.join('. ')}`, problems)
}
