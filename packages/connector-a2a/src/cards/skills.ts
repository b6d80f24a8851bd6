import type { JsonObject } from '@signalbox/http-kit'

import { defined, objectsOf, textOf, textsOf, without } from './card-members.ts'

/** Members that name credentials of the agent. The gateway does not forward credentials. */
const SECURITY: ReadonlySet<string> = new Set(['security', 'securityRequirements', 'security_requirements'])

/** The agent that a card describes. */
interface Described {
  readonly id: string
  readonly name: string
  readonly description: string
}

/**
 * Returns the skills with the members of A2A 1.0. A client may refuse a card without skills, so an agent
 * that names none has one: itself.
 */
export function skillsV10(skills: unknown, { id, name, description }: Described): readonly JsonObject[] {
  const known = objectsOf(skills).map((skill) =>
    defined({
      ...requiredOf(skill),
      examples: textsOf(skill['examples']),
      inputModes: textsOf(skill['inputModes']),
      outputModes: textsOf(skill['outputModes']),
    }),
  )
  return known.length > 0 ? known : [{ id, name, description, tags: ['agent'] }]
}

/** Returns the skills with all their members, but without security of their own. */
export function skillsOfBoth(skills: unknown, described: Described): readonly JsonObject[] {
  const known = objectsOf(skills).map((skill) => Object.assign(without(skill, SECURITY), requiredOf(skill)))
  return known.length > 0 ? known : skillsV10(skills, described)
}

/** The members that clients require, with a value in place of those that the agent leaves out. */
function requiredOf(skill: JsonObject): JsonObject {
  const name = textOf(skill['name']) ?? textOf(skill['id']) ?? 'skill'
  const id = textOf(skill['id']) ?? name
  return { id, name, description: textOf(skill['description']) ?? name, tags: textsOf(skill['tags']) ?? [id] }
}
