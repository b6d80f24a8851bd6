import { shownText } from '../../text.ts'
import type { JsonSchemaObject } from './json-schema.ts'
import { escaped } from './json-schema.ts'
import { LinearPattern } from './linear-pattern.ts'

/** The most problems that are reported. */
const MAX_PROBLEMS = 10
/** The most work for one body, in visits of a schema or a value: some 20 ms. */
const MAX_WORK = 120_000
/** The most schemas within schemas, in one check. */
export const MAX_DEPTH = 1_000
/** The characters of a text that cost as much as a visit. */
const TEXT_UNIT = 32
/** The longest pointer, and the longest list of names, that a problem shows. */
const MAX_SHOWN = 200

/** The way to a part of a body. */
export interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
}

/** A part that does not match. Its pointer is only written for a report: a check of alternatives finds many. */
export interface Failure {
  readonly at: Place | undefined
  readonly problem: string
}

export type Rule = (value: unknown, at: Place | undefined, run: Run) => void

/** Ends a check that takes too long. */
export class TooMuchWork extends Error {}

/** The check of one body. */
export class Run {
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

/** Returns the rules for the type of a value, and for lists of values. */
export function valueRules(schema: JsonSchemaObject): readonly Rule[] {
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

/** Returns the rules for numbers. */
export function numberRules({
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

/** Returns the rules for texts. */
export function stringRules({
  minLength = 0,
  maxLength = Infinity,
  pattern: source,
}: JsonSchemaObject): readonly Rule[] {
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

/** Returns the rules for the numbers of items and properties. */
export function countRules(schema: JsonSchemaObject): readonly Rule[] {
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

/** Returns the rule that an object has these properties. */
export function requiredRule(names: readonly string[]): Rule {
  return (value, at, run) => {
    if (!isObject(value)) return
    run.spend(names.length)
    for (const name of names)
      if (!Object.hasOwn(value, name)) run.fail(at, `must have ${shownText(name)}, which is missing`)
  }
}

/** Returns whether a text matches a pattern; its steps are work of the check. */
export function matches(pattern: LinearPattern, text: string, run: Run): boolean {
  run.spend(8)
  return pattern.test(text, (steps) => run.spend(1 + steps))
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

/** Returns whether a value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
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

/** Returns a list of names, shortened. */
export function namesText(names: readonly string[], separator = ', '): string {
  const text = names.join(separator)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

/** Returns a JSON pointer, shortened. */
export function pointerOf(at: Place | undefined): string {
  const keys: string[] = []
  for (let place = at; place !== undefined; place = place.parent)
    keys.push(escaped(String(place.key).slice(0, MAX_SHOWN)))
  const pointer = keys
    .toReversed()
    .map((key) => `/${key}`)
    .join('')
  return pointer.length > MAX_SHOWN ? `${pointer.slice(0, MAX_SHOWN)}…` : pointer
}
