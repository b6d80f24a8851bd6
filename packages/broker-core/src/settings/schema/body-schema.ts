import type { Failure, Place, Rule } from './body-rules.ts'
import {
  countRules,
  isObject,
  matches,
  MAX_DEPTH,
  namesText,
  numberRules,
  pointerOf,
  requiredRule,
  Run,
  stringRules,
  TooMuchWork,
  valueRules,
} from './body-rules.ts'
import type { JsonSchema, JsonSchemaObject } from './json-schema.ts'
import { SchemaReader } from './json-schema.ts'
import { LinearPattern } from './linear-pattern.ts'

/** A part of a body that does not match. */
export interface BodyProblem {
  /** The JSON pointer of the part; empty for the whole body. */
  readonly pointer: string
  readonly problem: string
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
