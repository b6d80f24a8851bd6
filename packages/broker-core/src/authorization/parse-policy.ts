import type { Glob } from '../glob.ts'
import { matchesGlob, parseGlob } from '../glob.ts'
import { shownText } from '../text.ts'
import type { Effect, Policy, PolicyRule } from './policy.ts'
import { POLICY_ACTIONS, RESOURCE_TYPES } from './policy.ts'

/** The error for a policy that is not valid. `problems` has one line per problem; `message` has all lines. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** The maximum number of rules in a policy, and of entries in each list of a rule. */
const MAX_POLICY_RULES = 10_000
const MAX_POLICY_ENTRIES = 1_000

/** The maximum length of a glob, in UTF-16 units: longer than any ClientID or channel name that it could match. */
const MAX_GLOB_LENGTH = 512

const KEYS = ['clients', 'actions', 'patterns', 'channels', 'effect']
const EFFECTS: readonly Effect[] = ['allow', 'deny']

type Report = (problem: string) => void

/**
 * Parses a policy from JSON or YAML data: `{rules: [{clients, actions, patterns, channels, effect}]}`. Each of the
 * first four fields is a glob or a list of globs; `effect` is `allow` or `deny`.
 * @throws PolicyError with every problem
 */
export function parsePolicy(input: unknown): Policy {
  const steps = parsePolicySteps(input)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Parses like {@link parsePolicy}, one rule per step, for callers that must not block their event loop for the whole
 * policy.
 */
export function* parsePolicySteps(input: unknown): Generator<undefined, Policy> {
  const fields = fieldsOf(input)
  if (fields === undefined) throw new PolicyError([`it is ${describe(input)}; allowed is {rules: […]}`])
  const problems = [...fields.keys()]
    .filter((name) => name !== 'rules')
    .map((name) => `unknown key ${describe(name)}; allowed is rules`)
  const entries = fields.get('rules')
  if (!Array.isArray(entries)) {
    throw new PolicyError([...problems, `rules: it is ${describe(entries)}; allowed is a list of rules`])
  }
  if (entries.length > MAX_POLICY_RULES) {
    throw new PolicyError([...problems, `rules: there are ${entries.length}; at most ${MAX_POLICY_RULES} are allowed`])
  }
  const rules: PolicyRule[] = []
  for (const [index, entry] of (entries as readonly unknown[]).entries()) {
    const rule = parseRule(entry, index, (problem) => problems.push(`rule ${index}: ${problem}`))
    if (rule !== undefined) rules.push(rule)
    yield
  }
  if (problems.length > 0) throw new PolicyError(problems)
  return { rules }
}

function parseRule(entry: unknown, index: number, report: Report): PolicyRule | undefined {
  const fields = fieldsOf(entry)
  if (fields === undefined) {
    report(`it is ${describe(entry)}; allowed is {${KEYS.join(', ')}}`)
    return undefined
  }
  for (const name of fields.keys()) {
    if (!KEYS.includes(name)) report(`unknown key ${describe(name)}; allowed are ${KEYS.join(', ')}`)
  }
  const effect = EFFECTS.find((known) => known === fields.get('effect'))
  if (effect === undefined) {
    report(`effect is ${describe(fields.get('effect'))}; allowed are ${EFFECTS.join(', ')}`)
    return undefined
  }
  return {
    index,
    clients: globs(fields, 'clients', report),
    actions: names(fields, 'actions', POLICY_ACTIONS, report),
    patterns: names(fields, 'patterns', RESOURCE_TYPES, report),
    channels: globs(fields, 'channels', report),
    effect,
  }
}

function globs(fields: ReadonlyMap<string, unknown>, name: string, report: Report): readonly Glob[] {
  return texts(fields, name, report).map(parseGlob)
}

/**
 * Returns the words of a fixed vocabulary that match the globs. Reports a glob without a match: it is a typing error.
 */
function names<T extends string>(
  fields: ReadonlyMap<string, unknown>,
  name: string,
  vocabulary: readonly T[],
  report: Report,
): ReadonlySet<T> {
  const found = new Set<T>()
  for (const text of texts(fields, name, report)) {
    const glob = parseGlob(text)
    const matched = vocabulary.filter((word) => matchesGlob(glob, word))
    if (matched.length === 0) report(`${name}: ${describe(text)} is unknown; allowed are ${vocabulary.join(', ')}, *`)
    for (const word of matched) found.add(word)
  }
  return found
}

function texts(fields: ReadonlyMap<string, unknown>, name: string, report: Report): readonly string[] {
  const value = fields.get(name)
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.length === 0 || list.length > MAX_POLICY_ENTRIES) {
    report(`${name} has ${list.length} entries; allowed are 1 to ${MAX_POLICY_ENTRIES}`)
    return []
  }
  return list.filter((entry): entry is string => {
    const isText = typeof entry === 'string' && entry !== '' && entry.length <= MAX_GLOB_LENGTH
    if (!isText)
      report(`${name}: ${describe(entry)}; allowed is a text of 1 to ${MAX_GLOB_LENGTH} characters, or a list`)
    return isText
  })
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return new Map(Object.entries(value))
}

function describe(value: unknown): string {
  if (value === null) return 'empty'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return 'an object'
  return shownText(value)
}
