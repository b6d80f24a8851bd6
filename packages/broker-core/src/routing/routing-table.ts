import { shownText } from '../text.ts'
import { RoutingTableError } from './errors.ts'
import type { KeyType, RoutingRule, RoutingTarget } from './rule.ts'
import { channelTemplate, compileCondition, KEY_TYPES, ROUTABLE_TYPES } from './rule.ts'

/** The maximum number of entries in a table, and of targets in an entry. */
const MAX_RULES = 1000
const MAX_TARGETS = 64

const KEYS = ['key', 'keyType', 'routes']

/** A routing table whose entries are all valid. Created by {@link parseRoutingTable}. */
export interface RoutingTable {
  readonly rules: readonly RoutingRule[]
}

/**
 * Parses a routing table from JSON data: an array of `{key, keyType, routes}`. `keyType` is `regex` (the default; it
 * must match the whole channel name) or `cesql`. `routes` is a list of targets `type:channel`, separated by semicolons.
 * @throws RoutingTableError with every problem
 */
export function parseRoutingTable(input: unknown): RoutingTable {
  const steps = parseRoutingTableSteps(input)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Parses like {@link parseRoutingTable}, one entry per step, for callers that must not block their event loop for the
 * whole table.
 */
export function* parseRoutingTableSteps(input: unknown): Generator<undefined, RoutingTable> {
  if (!Array.isArray(input)) throw new RoutingTableError(['it must be an array of {key, keyType, routes}'])
  if (input.length > MAX_RULES) {
    throw new RoutingTableError([`it has ${input.length} entries; at most ${MAX_RULES} are allowed`])
  }
  const problems: string[] = []
  const rules: RoutingRule[] = []
  for (const [index, entry] of (input as readonly unknown[]).entries()) {
    const rule = parseRule(entry, index, (problem) => problems.push(`entry ${index}: ${problem}`))
    if (rule) rules.push(rule)
    yield
  }
  if (problems.length > 0) throw new RoutingTableError(problems)
  return { rules }
}

type Report = (problem: string) => void

function parseRule(entry: unknown, index: number, report: Report): RoutingRule | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    report(`it is ${describe(entry)}; it must be an object {key, keyType, routes}`)
    return undefined
  }
  const fields = new Map<string, unknown>(Object.entries(entry))
  for (const name of fields.keys()) {
    if (!KEYS.includes(name)) report(`unknown key ${describe(name)}; allowed are ${KEYS.join(', ')}`)
  }
  const keyType = parseKeyType(fields.get('keyType'), report)
  const key = text(fields, 'key', 'a regular expression or a CESQL expression', report)
  const routes = text(fields, 'routes', 'targets such as "queues:work;events_store:archive"', report)
  const matches = key === undefined || keyType === undefined ? undefined : compileCondition(key, keyType)
  if (typeof matches === 'string') report(`key: ${matches}`)
  const targets = routes === undefined ? [] : parseTargets(routes, report)
  if (key === undefined || keyType === undefined || typeof matches !== 'function') return undefined
  return { index, key, keyType, matches, targets }
}

function parseKeyType(value: unknown, report: Report): KeyType | undefined {
  const keyType = value === undefined ? 'regex' : KEY_TYPES.find((known) => known === value)
  if (!keyType) report(`keyType is ${describe(value)}; allowed are ${KEY_TYPES.join(', ')}`)
  return keyType
}

function text(fields: ReadonlyMap<string, unknown>, name: string, wanted: string, report: Report): string | undefined {
  const value = fields.get(name)
  if (typeof value === 'string' && value.trim() !== '') return value
  report(
    value === undefined
      ? `${name} is missing; it must be ${wanted}`
      : `${name} is ${describe(value)}; it must be ${wanted}`,
  )
  return undefined
}

function parseTargets(routes: string, report: Report): readonly RoutingTarget[] {
  const targets: RoutingTarget[] = []
  const seen = new Set<string>()
  const sources = routes.split(';').map((source) => source.trim())
  if (sources.length > MAX_TARGETS) report(`routes: ${sources.length} targets; at most ${MAX_TARGETS} are allowed`)
  for (const source of sources) {
    if (seen.has(source)) report(`routes: target ${describe(source)} is listed twice`)
    seen.add(source)
    const target = parseTarget(source)
    if (typeof target === 'string') report(`routes: target ${describe(source)}: ${target}`)
    else targets.push(target)
  }
  return targets
}

function parseTarget(source: string): RoutingTarget | string {
  const colon = source.indexOf(':')
  const name = source.slice(0, Math.max(0, colon))
  const type = ROUTABLE_TYPES.find((known) => known === name)
  if (!type) {
    const allowed = `allowed is type:channel with type ${ROUTABLE_TYPES.join(', ')}`
    return name === 'commands' || name === 'queries' ? `${name} need an answer; ${allowed}` : allowed
  }
  const channel = channelTemplate(source.slice(colon + 1))
  return typeof channel === 'string' ? channel : { type, channel }
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return value === undefined ? 'missing' : 'an object'
  return shownText(value)
}
