/**
 * The members of a type and their types: `string`, `bool`, `int`, `bytes` (base64), `time` (RFC 3339 in UTC), `any`, `object`,
 * `=text` for one constant, a name of the schema, any of these with `[]`; `{}` after a name is a map. `!` demands the member.
 */
export type Members = Readonly<Record<string, string>>

export interface StrictType {
  readonly members?: Members
  /** Members of which exactly one is there. */
  readonly oneOf?: readonly string[]
  /** The values of an enumeration. */
  readonly values?: readonly string[]
  /** Type names by the value of the member `kind`. */
  readonly kinds?: Members
  /** Accepts members that it does not know. */
  readonly open?: true
}

export type Schema = Readonly<Record<string, StrictType>>

type Json = Readonly<Record<string, unknown>>

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const PRIMITIVES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  bool: (value) => typeof value === 'boolean',
  int: (value) => Number.isInteger(value),
  bytes: (value) => typeof value === 'string' && BASE64.test(value),
  time: (value) => typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value)),
  object: isObject,
  any: () => true,
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns what a strict parser would refuse in a value, with the path of each. */
export function problems(schema: Schema, type: string, value: unknown, path = type): readonly string[] {
  if (type.endsWith('[]')) {
    if (!Array.isArray(value)) return [`${path} is not an array`]
    return value.flatMap((each, i) => problems(schema, type.slice(0, -2), each, `${path}[${i}]`))
  }
  if (type.endsWith('{}')) {
    if (!isObject(value)) return [`${path} is not a map`]
    return Object.entries(value).flatMap(([key, each]) => problems(schema, type.slice(0, -2), each, `${path}.${key}`))
  }
  if (type.startsWith('=')) return value === type.slice(1) ? [] : [`${path} is not ${type.slice(1)}`]
  const primitive = PRIMITIVES[type]
  if (primitive !== undefined) return primitive(value) ? [] : [`${path} is not ${type}: ${JSON.stringify(value)}`]
  const strict = schema[type]
  if (strict === undefined) throw new Error(`the schema has no ${type}`)
  if (strict.values !== undefined) {
    return strict.values.some((each) => each === value) ? [] : [`${path} is not a ${type}: ${JSON.stringify(value)}`]
  }
  if (!isObject(value)) return [`${path} is not an object`]
  if (strict.kinds !== undefined) {
    const kind = strict.kinds[String(value['kind'])]
    return kind === undefined ? [`${path}.kind is ${String(value['kind'])}`] : problems(schema, kind, value, path)
  }
  return objectProblems(schema, strict, value, path)
}

function objectProblems(schema: Schema, { members = {}, oneOf, open }: StrictType, value: Json, path: string) {
  const found: string[] = []
  for (const [name, each] of Object.entries(value)) {
    const type = members[name]
    if (type !== undefined) found.push(...problems(schema, type.replace('!', ''), each, `${path}.${name}`))
    else if (open !== true) found.push(`${path}.${name} is unknown`)
  }
  for (const [name, type] of Object.entries(members)) {
    if (type.endsWith('!') && !(name in value)) found.push(`${path}.${name} is missing`)
  }
  const chosen = oneOf?.filter((name) => name in value)
  if (chosen !== undefined && chosen.length !== 1) {
    found.push(`${path} has ${chosen.length} of ${oneOf?.join(', ')}`)
  }
  return found
}
