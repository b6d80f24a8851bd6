import { shownText } from '../../text.ts'
import type { JsonSchema, JsonSchemaObject } from './json-schema.ts'
import { escaped, SchemaReader } from './json-schema.ts'
import { LinearPattern } from './linear-pattern.ts'

/** A part of a body that does not match. */
export interface BodyProblem {
  /** The JSON pointer of the part; empty for the whole body. */
  readonly pointer: string
  readonly problem: string
}

/** The most problems that are reported. */
const MAX_PROBLEMS = 10
/** The most work for one body, in visits of a schema or a value: some 20 ms. */
const MAX_WORK = 120_000
/** The most schemas within schemas, in one check. */
const MAX_DEPTH = 1_000
/** The characters of a text that cost as much as a visit. */
const TEXT_UNIT = 32
/** The longest pointer, and the longest list of names, that a problem shows. */
const MAX_SHOWN = 200

/** The way to a part of a body. */
interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
}

/** A part that does not match. Its pointer is only written for a report: a check of alternatives finds many. */
interface Failure {
  readonly at: Place | undefined
  readonly problem: string
}

type Rule = (value: unknown, at: Place | undefined, run: Run) => void

/** Ends a check that takes too long. */
class TooMuchWork extends Error {}

/** The check of one body. */
class Run {
  failures: Failure[] = []
  depth = 0
  /** The keys of each object: asking for them is slow for some objects. */
  readonly #keys = new Map<object, readonly string[]>()
  #most = MAX_PROBLEMS
  #left = MAX_WORK

  /** `true` if further problems are of no interest. */
  get isFull(): boolean {
    return this.failures.length >= this.#most
  }

  /** `true` if only the first failure counts. */
  get isAttempt(): boolean {
    return this.#most === 1
  }

  keysOf(value: object): readonly string[] {
    let keys = this.#keys.get(value)
    if (keys === undefined) {
      keys = Object.keys(value)
      this.spend(2 * keys.length)
      this.#keys.set(value, keys)
    }
    return keys
  }

  spend(work: number): void {
    this.#left -= work
    if (this.#left < 0) throw new TooMuchWork()
  }

  fail(at: Place | undefined, problem: string): void {
    this.spend(4)
    if (!this.isFull) this.failures.push({ at, problem })
  }

  /** Returns the first failure of a check, without reporting it. */
  attempt(check: () => void): Failure | undefined {
    this.spend(4)
    const { failures } = this
    const most = this.#most
    this.failures = []
    this.#most = 1
    check()
    const [first] = this.failures
    this.failures = failures
    this.#most = most
    return first
  }
}

/**
 * Checks bodies against a JSON Schema. Written for bodies of strangers: the work of a check is limited for every
 * schema and body, and a schema costs nothing before its first check. Libraries that compile schemas
 * take 100 ms and more for a schema of 8 KiB.
 */
export class BodySchema {
  readonly #reader: SchemaReader
  readonly #schema: JsonSchema
  readonly #rules = new Map<JsonSchemaObject, readonly Rule[]>()

  /** @throws TypeError for a schema that is not valid or not supported */
  constructor(schema: unknown) {
    this.#reader = new SchemaReader(schema)
    const [problem] = this.#reader.problems
    const root = this.#reader.target('#')
    if (problem !== undefined || root === undefined) {
      throw new TypeError(`the schema is not valid: ${problem?.pointer ?? ''} must be ${problem?.allowed ?? ''}`)
    }
    this.#schema = root
  }

  /** Returns the first problems of a value; none if it matches. */
  problems(value: unknown): readonly BodyProblem[] {
    const run = new Run()
    try {
      this.#visit(this.#schema, value, undefined, run)
    } catch (error) {
      if (!(error instanceof TooMuchWork)) throw error
      return [{ pointer: '', problem: 'is too large or nested too deep to be checked against this schema' }]
    }
    return run.failures.map(({ at, problem }) => ({ pointer: pointerOf(at), problem }))
  }

  #visit(schema: JsonSchema, value: unknown, at: Place | undefined, run: Run): void {
    if (run.isFull) return
    run.spend(1)
    if (schema === false) return run.fail(at, 'is not allowed')
    if (schema === true) return
    const rules = this.#rulesOf(schema, run)
    run.spend(rules.length)
    if (++run.depth > MAX_DEPTH) throw new TooMuchWork()
    for (const rule of rules) rule(value, at, run)
    run.depth--
  }

  #rulesOf(schema: JsonSchemaObject, run: Run): readonly Rule[] {
    let rules = this.#rules.get(schema)
    if (rules === undefined) {
      run.spend(16)
      rules = [
        ...valueRules(schema),
        ...numberRules(schema),
        ...stringRules(schema),
        ...countRules(schema),
        ...this.#arrayRules(schema),
        ...this.#objectRules(schema),
        ...this.#combinedRules(schema),
      ]
      this.#rules.set(schema, rules)
    }
    return rules
  }

  /** Returns a rule with further schemas for the same value. */
  #combinedRules(schema: JsonSchemaObject): readonly Rule[] {
    const { $ref, allOf = [], anyOf, oneOf, not, dependentSchemas = {} } = schema
    const rules: Rule[] = []
    const all = [...($ref === undefined ? [] : [this.#reader.target($ref) ?? false]), ...allOf]
    if (all.length > 0) rules.push((value, at, run) => all.forEach((each) => this.#visit(each, value, at, run)))
    if (anyOf !== undefined) rules.push((value, at, run) => this.#alternatives(anyOf, false, value, at, run))
    if (oneOf !== undefined) rules.push((value, at, run) => this.#alternatives(oneOf, true, value, at, run))
    if (not !== undefined) {
      rules.push((value, at, run) => {
        if (run.attempt(() => this.#visit(not, value, at, run)) === undefined)
          run.fail(at, 'must not match a schema (not)')
      })
    }
    const condition = schema.if
    if (condition !== undefined) {
      rules.push((value, at, run) => {
        const failed = run.attempt(() => this.#visit(condition, value, at, run)) !== undefined
        this.#visit((failed ? schema.else : schema.then) ?? true, value, at, run)
      })
    }
    for (const [name, dependent] of Object.entries(dependentSchemas)) {
      rules.push((value, at, run) => {
        if (isObject(value) && Object.hasOwn(value, name)) this.#visit(dependent, value, at, run)
      })
    }
    return rules
  }

  #alternatives(
    schemas: readonly JsonSchema[],
    single: boolean,
    value: unknown,
    at: Place | undefined,
    run: Run,
  ): void {
    const failures: Failure[] = []
    let matches = 0
    for (const schema of schemas) {
      const failure = run.attempt(() => this.#visit(schema, value, at, run))
      if (failure === undefined) matches++
      else if (failures.length < 3) failures.push(failure)
      if (matches > (single ? 1 : 0)) break
    }
    if (matches === 1 || (matches > 0 && !single)) return
    if (matches > 1) return run.fail(at, 'matches several schemas of oneOf; it must match one')
    const none = `matches none of ${schemas.length} schemas`
    if (run.isAttempt) return run.fail(at, none)
    const reasons = failures.map((each) => (each.at === at ? each.problem : `${pointerOf(each.at)} ${each.problem}`))
    run.fail(at, `${none}: ${reasons.join('; or ')}`)
  }

  #arrayRules({
    prefixItems = [],
    items,
    contains,
    minContains = 1,
    maxContains = Infinity,
  }: JsonSchemaObject): readonly Rule[] {
    const rules: Rule[] = []
    if (prefixItems.length > 0 || items !== undefined) {
      rules.push((value, at, run) => {
        if (!Array.isArray(value)) return
        for (let index = 0; index < value.length; index++) {
          const schema = prefixItems[index] ?? items
          if (schema === undefined || run.isFull) return
          this.#visit(schema, value[index], { parent: at, key: index }, run)
        }
      })
    }
    if (contains !== undefined) {
      rules.push((value, at, run) => {
        if (!Array.isArray(value)) return
        const isMatch = (each: unknown): boolean =>
          run.attempt(() => this.#visit(contains, each, at, run)) === undefined
        const count = value.filter(isMatch).length
        if (count < minContains) run.fail(at, `must have at least ${minContains} items that match contains`)
        if (count > maxContains) run.fail(at, `must have at most ${maxContains} items that match contains`)
      })
    }
    return rules
  }

  #objectRules(schema: JsonSchemaObject): readonly Rule[] {
    const { properties = {}, patternProperties = {}, additionalProperties, propertyNames, required = [] } = schema
    const rules: Rule[] = []
    const named = Object.entries(properties)
    const known = new Set(Object.keys(properties))
    const patterns = Object.entries(patternProperties).map(([source, each]) => ({
      pattern: new LinearPattern(source),
      each,
    }))
    if (required.length > 0) rules.push(requiredRule(required))
    for (const [name, needed] of Object.entries(schema.dependentRequired ?? {})) {
      const rule = requiredRule(needed)
      rules.push((value, at, run) => {
        if (isObject(value) && Object.hasOwn(value, name)) rule(value, at, run)
      })
    }
    if (named.length > 0) {
      rules.push((value, at, run) => {
        if (!isObject(value)) return
        run.spend(named.length)
        for (const [name, each] of named) {
          if (Object.hasOwn(value, name)) this.#visit(each, value[name], { parent: at, key: name }, run)
        }
      })
    }
    if (patterns.length > 0 || additionalProperties !== undefined || propertyNames !== undefined) {
      const extra = additionalProperties === false ? `is not allowed; allowed are ${namesText([...known])}` : undefined
      rules.push((value, at, run) => {
        if (!isObject(value)) return
        for (const name of run.keysOf(value)) {
          run.spend(1)
          if (run.isFull) return
          const place = { parent: at, key: name }
          if (propertyNames !== undefined) {
            const failure = run.attempt(() => this.#visit(propertyNames, name, place, run))
            if (failure !== undefined) run.fail(place, `has a name that ${failure.problem}`)
          }
          let isKnown = known.has(name)
          for (const { pattern, each } of patterns) {
            if (!matches(pattern, name, run)) continue
            isKnown = true
            this.#visit(each, value[name], place, run)
          }
          if (isKnown || additionalProperties === undefined) continue
          if (extra !== undefined) run.fail(place, extra)
          else this.#visit(additionalProperties, value[name], place, run)
        }
      })
    }
    return rules
  }
}

function valueRules(schema: JsonSchemaObject): readonly Rule[] {
  const { type, enum: values } = schema
  const rules: Rule[] = []
  if (type !== undefined) {
    const types = typeof type === 'string' ? [type] : type
    const must = `must be ${types.join(' or ')}`
    rules.push((value, at, run) => {
      const actual = typeOf(value)
      const isAllowed = types.includes(actual) || (actual === 'integer' && types.includes('number'))
      if (!isAllowed) run.fail(at, `${must}, not ${actual}`)
    })
  }
  const allowed = Object.hasOwn(schema, 'const') ? [schema.const] : values
  for (const list of [allowed, allowed === values ? undefined : values]) {
    if (list === undefined) continue
    const texts = new Set(list.map((each) => canonical(each)))
    const must = `must be ${namesText([...texts], ' or ')}`
    rules.push((value, at, run) => {
      if (!texts.has(canonical(value, run))) run.fail(at, must)
    })
  }
  return rules
}

function numberRules({
  minimum,
  exclusiveMinimum,
  maximum,
  exclusiveMaximum,
  multipleOf,
}: JsonSchemaObject): readonly Rule[] {
  const rules: Rule[] = []
  const add = (limit: number | undefined, must: string, isAllowed: (value: number, limit: number) => boolean): void => {
    if (limit === undefined) return
    rules.push((value, at, run) => {
      if (typeof value === 'number' && !isAllowed(value, limit)) run.fail(at, `must be ${must} ${limit}`)
    })
  }
  add(minimum, 'at least', (value, limit) => value >= limit)
  add(exclusiveMinimum, 'more than', (value, limit) => value > limit)
  add(maximum, 'at most', (value, limit) => value <= limit)
  add(exclusiveMaximum, 'less than', (value, limit) => value < limit)
  add(multipleOf, 'a multiple of', (value, limit) => {
    const quotient = value / limit
    return Math.abs(quotient - Math.round(quotient)) < 1e-9
  })
  return rules
}

function stringRules({ minLength = 0, maxLength = Infinity, pattern: source }: JsonSchemaObject): readonly Rule[] {
  const rules: Rule[] = []
  if (minLength > 0 || maxLength < Infinity) {
    rules.push((value, at, run) => {
      if (typeof value !== 'string') return
      const { length: units } = value
      // A code point has one or two units, so most texts need no count.
      const isClear = units > 2 * maxLength || (units <= maxLength && units >= 2 * minLength)
      const length = isClear ? units : lengthOf(value, run)
      if (length < minLength) run.fail(at, `must have at least ${minLength} characters`)
      if (length > maxLength) run.fail(at, `must have at most ${maxLength} characters`)
    })
  }
  if (source !== undefined) {
    const pattern = new LinearPattern(source)
    const must = `must match the pattern ${shownText(source, MAX_SHOWN)}`
    rules.push((value, at, run) => {
      // A longer text fails by maxLength.
      if (typeof value !== 'string' || value.length > 2 * maxLength) return
      if (!matches(pattern, value, run)) run.fail(at, must)
    })
  }
  return rules
}

function countRules(schema: JsonSchemaObject): readonly Rule[] {
  const { minItems = 0, maxItems = Infinity, uniqueItems, minProperties = 0, maxProperties = Infinity } = schema
  const rules: Rule[] = []
  if (minItems > 0 || maxItems < Infinity) {
    rules.push((value, at, run) => {
      if (!Array.isArray(value)) return
      if (value.length < minItems) run.fail(at, `must have at least ${minItems} items`)
      if (value.length > maxItems) run.fail(at, `must have at most ${maxItems} items`)
    })
  }
  if (uniqueItems) {
    rules.push((value, at, run) => {
      if (!Array.isArray(value)) return
      const seen = new Set<string>()
      for (const [index, each] of value.entries()) {
        const text = canonical(each, run)
        if (seen.has(text)) return run.fail({ parent: at, key: index }, 'repeats an earlier item')
        seen.add(text)
      }
    })
  }
  if (minProperties > 0 || maxProperties < Infinity) {
    rules.push((value, at, run) => {
      if (!isObject(value)) return
      const count = run.keysOf(value).length
      if (count < minProperties) run.fail(at, `must have at least ${minProperties} properties`)
      if (count > maxProperties) run.fail(at, `must have at most ${maxProperties} properties`)
    })
  }
  return rules
}

function requiredRule(names: readonly string[]): Rule {
  return (value, at, run) => {
    if (!isObject(value)) return
    run.spend(names.length)
    for (const name of names)
      if (!Object.hasOwn(value, name)) run.fail(at, `must have ${shownText(name)}, which is missing`)
  }
}

function matches(pattern: LinearPattern, text: string, run: Run): boolean {
  run.spend(8)
  return pattern.test(text, (steps) => run.spend(1 + steps))
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the number of code points. */
function lengthOf(text: string, run: Run): number {
  run.spend(text.length / TEXT_UNIT)
  let length = text.length
  for (let at = 0; at < text.length; at++) if ((text.codePointAt(at) ?? 0) > 0xffff) length--
  return length
}

/** Returns the JSON of a value with sorted keys: equal values have equal texts. */
function canonical(value: unknown, run = new Run()): string {
  run.spend(typeof value === 'string' ? 4 + value.length / TEXT_UNIT : 4)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (++run.depth > MAX_DEPTH) throw new TooMuchWork()
  const parts = Array.isArray(value)
    ? value.map((each) => canonical(each, run))
    : run
        .keysOf(value)
        .toSorted()
        .map((key) => `${canonical(key, run)}:${canonical(Reflect.get(value, key), run)}`)
  run.depth--
  return Array.isArray(value) ? `[${parts.join()}]` : `{${parts.join()}}`
}

function namesText(names: readonly string[], separator = ', '): string {
  const text = names.join(separator)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

/** Returns a JSON pointer, shortened. */
function pointerOf(at: Place | undefined): string {
  const keys: string[] = []
  for (let place = at; place !== undefined; place = place.parent)
    keys.push(escaped(String(place.key).slice(0, MAX_SHOWN)))
  const pointer = keys
    .toReversed()
    .map((key) => `/${key}`)
    .join('')
  return pointer.length > MAX_SHOWN ? `${pointer.slice(0, MAX_SHOWN)}…` : pointer
}
