import { Buffer } from 'node:buffer'

import { LinearPattern } from './linear-pattern.ts'

/** A JSON Schema (2020-12) with the keywords that are supported. `true` allows every value, `false` none. */
export type JsonSchema = boolean | JsonSchemaObject

type Schemas = Readonly<Record<string, JsonSchema>>

export interface JsonSchemaObject {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly allOf?: readonly JsonSchema[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly not?: JsonSchema
  readonly if?: JsonSchema
  readonly then?: JsonSchema
  readonly else?: JsonSchema
  readonly dependentSchemas?: Schemas
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly exclusiveMaximum?: number
  readonly multipleOf?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly prefixItems?: readonly JsonSchema[]
  readonly items?: JsonSchema
  readonly contains?: JsonSchema
  readonly minContains?: number
  readonly maxContains?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly properties?: Schemas
  readonly patternProperties?: Schemas
  readonly additionalProperties?: JsonSchema
  readonly propertyNames?: JsonSchema
  readonly required?: readonly string[]
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>
  readonly minProperties?: number
  readonly maxProperties?: number
}

/** A part of a schema that is not allowed. */
export interface SchemaProblem {
  /** The JSON pointer of the part. */
  readonly pointer: string
  readonly given: unknown
  readonly allowed: string
}

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']

const MAX_SCHEMA_BYTES = 32_768
const MAX_PATTERNS = 64
/** The longest text that is compared with a pattern. */
const MAX_PATTERN_TEXT = 256
const MAX_DEPTH = 64
const MAX_PROBLEMS = 20

/** The values of keywords that have no schemas in them: a check, and the allowed values in words. */
const VALUES = {
  any: [() => true, ''],
  dialect: [(value) => value === DIALECT, `${DIALECT}, or absent`],
  types: [
    (value) => listOf(value).length > 0 && listOf(value).every((each) => TYPES.some((type) => type === each)),
    `one or more of ${TYPES.join(', ')}`,
  ],
  values: [(value) => Array.isArray(value) && value.length > 0, 'an array with at least one value'],
  number: [(value) => Number.isFinite(value), 'a number'],
  positive: [(value) => typeof value === 'number' && value > 0 && value < Infinity, 'a number above 0'],
  count: [(value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number of at least 0'],
  boolean: [(value) => typeof value === 'boolean', 'true or false'],
  strings: [isStrings, 'an array of strings'],
  stringsByName: [(value) => isObject(value) && Object.values(value).every(isStrings), 'an object of string arrays'],
} as const satisfies Record<string, readonly [(value: unknown) => boolean, string]>

/** The other values: a schema, a list or an object of schemas, a pattern, a reference. */
type Kind = keyof typeof VALUES | 'schema' | 'list' | 'byName' | 'pattern' | 'ref'

const BY_KIND: readonly (readonly [Kind, string])[] = [
  ['any', '$id $comment title description default examples deprecated readOnly writeOnly const'],
  ['any', 'format contentEncoding contentMediaType contentSchema'],
  ['dialect', '$schema'],
  ['types', 'type'],
  ['values', 'enum'],
  ['number', 'minimum exclusiveMinimum maximum exclusiveMaximum'],
  ['positive', 'multipleOf'],
  ['count', 'minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties'],
  ['boolean', 'uniqueItems'],
  ['strings', 'required'],
  ['stringsByName', 'dependentRequired'],
  ['schema', 'not if then else items contains additionalProperties propertyNames'],
  ['list', 'allOf anyOf oneOf prefixItems'],
  ['byName', '$defs definitions properties patternProperties dependentSchemas'],
  ['pattern', 'pattern'],
  ['ref', '$ref'],
]

const KEYWORDS = new Map(BY_KIND.flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind] as const)))

/** Reads a schema: the schemas in it by JSON pointer, and every problem. */
export class SchemaReader {
  readonly problems: SchemaProblem[] = []
  readonly #schemas = new Map<string, JsonSchema>()
  readonly #references: { readonly pointer: string; readonly ref: string }[] = []
  #patterns = 0

  constructor(schema: unknown) {
    const bytes = Buffer.byteLength(JSON.stringify(schema) ?? '')
    if (bytes > MAX_SCHEMA_BYTES) this.#refuse('', `${bytes} bytes`, `at most ${MAX_SCHEMA_BYTES} bytes as JSON`)
    else this.#read(schema, '', 0)
    for (const { pointer, ref } of this.#references) {
      if (this.target(ref) === undefined)
        this.#refuse(pointer, ref, 'a reference to a schema in this one, such as #/$defs/x')
    }
    if (this.problems.length === 0) this.#refuseCircles()
  }

  /** Returns the schema that a reference leads to. */
  target(ref: string): JsonSchema | undefined {
    try {
      return ref.startsWith('#') ? this.#schemas.get(decodeURIComponent(ref.slice(1))) : undefined
    } catch {
      return undefined
    }
  }

  #refuse(pointer: string, given: unknown, allowed: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push({ pointer, given, allowed })
  }

  #read(schema: unknown, pointer: string, depth: number): void {
    if (!isSchema(schema)) return this.#refuse(pointer, schema, 'a schema: an object, true or false')
    if (depth > MAX_DEPTH) return this.#refuse(pointer, schema, `nested at most ${MAX_DEPTH} deep`)
    this.#schemas.set(pointer, schema)
    if (typeof schema === 'boolean') return
    for (const [name, value] of Object.entries(schema)) {
      const at = `${pointer}/${escaped(name)}`
      const kind = KEYWORDS.get(name)
      if (kind === undefined) {
        if (!name.startsWith('x-')) this.#refuse(at, value, 'absent: this keyword is not supported')
      } else if (name.startsWith('$') && pointer !== '' && (name === '$id' || name === '$schema')) {
        this.#refuse(at, value, 'absent: only the outermost schema may have it')
      } else this.#readKeyword(kind, value, at, depth + 1)
    }
    this.#readPatterns(schema, pointer)
  }

  #readKeyword(kind: Kind, value: unknown, at: string, depth: number): void {
    if (kind === 'schema') {
      this.#read(value, at, depth)
    } else if (kind === 'list') {
      if (!Array.isArray(value) || value.length === 0)
        return this.#refuse(at, value, 'an array with at least one schema')
      for (const [index, each] of value.entries()) this.#read(each, `${at}/${index}`, depth)
    } else if (kind === 'byName') {
      if (!isObject(value)) return this.#refuse(at, value, 'an object of schemas')
      for (const [name, each] of Object.entries(value)) this.#read(each, `${at}/${escaped(name)}`, depth)
    } else if (kind === 'ref' || kind === 'pattern') {
      if (typeof value !== 'string') this.#refuse(at, value, 'a string')
      else if (kind === 'ref') this.#references.push({ pointer: at, ref: value })
    } else {
      const [isAllowed, allowed] = VALUES[kind]
      if (!isAllowed(value)) this.#refuse(at, value, allowed)
    }
  }

  #readPatterns({ pattern, maxLength, patternProperties, propertyNames }: JsonSchemaObject, pointer: string): void {
    if (typeof pattern === 'string') this.#readPattern(pattern, `${pointer}/pattern`, isShort(maxLength), 'maxLength')
    if (!isObject(patternProperties)) return
    const bounded = isObject(propertyNames) && isShort(propertyNames['maxLength'])
    for (const each of Object.keys(patternProperties)) {
      this.#readPattern(each, `${pointer}/patternProperties/${escaped(each)}`, bounded, 'propertyNames.maxLength')
    }
  }

  #readPattern(pattern: string, at: string, bounded: boolean, bound: string): void {
    if (++this.#patterns > MAX_PATTERNS) return this.#refuse(at, pattern, `one of at most ${MAX_PATTERNS} patterns`)
    if (!bounded) this.#refuse(at, pattern, `with ${bound} of at most ${MAX_PATTERN_TEXT} next to it`)
    try {
      void new LinearPattern(pattern)
    } catch (error) {
      this.#refuse(
        at,
        pattern,
        `a pattern that is supported: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
  }

  /** Refuses references that lead back to themselves without a step into the value: their check would never end. */
  #refuseCircles(): void {
    const open = new Set<JsonSchema>()
    const done = new Set<JsonSchema>()
    const visit = (schema: JsonSchema): void => {
      if (typeof schema === 'boolean' || done.has(schema)) return
      open.add(schema)
      for (const next of this.#forSameValue(schema)) {
        if (open.has(next)) this.#refuse('', schema.$ref, 'without a circle of schemas that apply to the same value')
        else visit(next)
      }
      open.delete(schema)
      done.add(schema)
    }
    for (const schema of this.#schemas.values()) if (this.problems.length === 0) visit(schema)
  }

  #forSameValue(schema: JsonSchemaObject): readonly JsonSchema[] {
    const { $ref, allOf = [], anyOf = [], oneOf = [], not, dependentSchemas = {} } = schema
    const target = $ref === undefined ? undefined : this.target($ref)
    const single = [target, not, schema.if, schema.then, schema.else].filter((each) => each !== undefined)
    return [...single, ...allOf, ...anyOf, ...oneOf, ...Object.values(dependentSchemas)]
  }
}

/** Escapes a name for a JSON pointer. */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'boolean' || isObject(value)
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function isShort(maxLength: unknown): boolean {
  return typeof maxLength === 'number' && maxLength <= MAX_PATTERN_TEXT
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value]
}
