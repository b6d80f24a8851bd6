import { BrokerError } from './errors.ts'
import { mostSimilar, shownText } from './text.ts'

/** The allowed types of an option. `any` leaves the check to the function that uses it. */
export type OptionType = 'text' | 'number' | 'boolean' | 'function' | 'object' | 'texts' | 'any'

/** The type of every option of `T`, so that an option without one does not compile. */
export type OptionTypes<T> = Readonly<Record<keyof T, OptionType>>

const ALLOWED: Readonly<Record<OptionType, string>> = {
  text: 'a text',
  number: 'a number',
  boolean: 'true, false',
  function: 'a function',
  object: 'an object',
  texts: 'a text or a list of texts',
  any: 'any value',
}

/**
 * Checks the names and the types of options that a program passes. Reports all problems at once.
 * @param source The name of the function, and the path of a nested object: `mcpConnector`, `mcpConnector tasks`
 * @param required The options that must be there
 * @throws TypeError
 */
export function checkOptions<T extends object>(
  source: string,
  options: T,
  types: OptionTypes<T>,
  required: readonly (keyof T & string)[] = [],
): void {
  if (!isObject(options) || Array.isArray(options)) {
    throw new TypeError(`${source}: options: ${shown(options)} is not allowed; allowed: an object`)
  }
  const known = new Map<string, OptionType>(Object.entries(types))
  const problems: string[] = []
  for (const [name, value] of Object.entries(options)) {
    const type = known.get(name)
    if (type === undefined) problems.push(unknownOption(name, [...known.keys()]))
    else if (value !== undefined && !fits(value, type)) problems.push(refusal(name, value, ALLOWED[type]))
  }
  for (const name of required) {
    const type = known.get(name) ?? 'any'
    if (options[name] === undefined) problems.push(`${name}: it is missing; allowed: ${ALLOWED[type]}`)
  }
  if (problems.length > 0) throw new TypeError(`${source}: ${problems.join('; ')}`)
}

/**
 * Checks the broker that a program passes.
 * @throws TypeError
 */
export function checkBroker(source: string, broker: unknown): void {
  if (isObject(broker) && typeof broker['as'] === 'function') return
  const remedy =
    isObject(broker) && isObject(broker['broker'])
      ? 'pass the member `broker` of it'
      : 'create one with createBroker of @signalbox/broker-core'
  throw new TypeError(`${source}: ${refusal('broker', broker, `a Broker; ${remedy}`)}`)
}

/**
 * Checks that an object has members that are objects, such as the parts that a function needs; it may have more.
 * @throws TypeError
 */
export function checkParts(source: string, parts: unknown, required: readonly string[]): void {
  if (!isObject(parts)) {
    throw new TypeError(`${source}: ${shown(parts)} is not allowed; allowed: an object with ${required.join(', ')}`)
  }
  const problems = required.flatMap((name) => {
    const value = parts[name]
    if (value === undefined) return [`${name}: it is missing; allowed: ${ALLOWED.object}`]
    return fits(value, 'object') ? [] : [refusal(name, value, ALLOWED.object)]
  })
  if (problems.length > 0) throw new TypeError(`${source}: ${problems.join('; ')}`)
}

function unknownOption(name: string, allowed: readonly string[]): string {
  const meant = mostSimilar(name, allowed)
  return `${name}: unknown option${meant === undefined ? '' : `; did you mean ${meant}?`}; allowed: ${allowed.join(', ')}`
}

function refusal(name: string, value: unknown, allowed: string): string {
  return `${name}: ${shown(value)} is not allowed; allowed: ${allowed}`
}

function fits(value: unknown, type: OptionType): boolean {
  switch (type) {
    case 'any':
      return true
    case 'text':
      return typeof value === 'string'
    case 'texts':
      return typeof value === 'string' || (Array.isArray(value) && value.every((each) => typeof each === 'string'))
    case 'object':
      return isObject(value)
    default:
      return typeof value === type
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Returns a value in a few words. Its content may be secret. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return shownText(value)
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Promise) return 'a Promise (await it)'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

/** Throws unless `value` is an object, as the options and the input of a call are. @throws BrokerError ARGUMENT_INVALID */
export function assertObject(argument: string, value: unknown, allowed: string): void {
  if (typeof value !== 'object' || value === null) refuse(argument, value, allowed)
}

/** Throws unless `value` is a function. @throws BrokerError ARGUMENT_INVALID */
export function assertFunction<T>(argument: string, value: T): asserts value is Extract<T, Function> {
  if (typeof value !== 'function') refuse(argument, value, 'a function')
}

/** Throws unless `value` is a list of texts. @throws BrokerError ARGUMENT_INVALID */
export function assertTexts(argument: string, value: unknown): void {
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) {
    refuse(argument, value, 'a list of texts')
  }
}

/** Throws unless `value` identifies a caller. @throws BrokerError ARGUMENT_INVALID */
export function assertCaller(value: unknown): void {
  const id: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'clientId') : undefined
  if (typeof id === 'string' && id !== '') return
  if (typeof value !== 'object' || value === null) refuse('caller', value, CALLER)
  refuse('caller.clientId', id, '1 to 256 visible ASCII characters')
}

const CALLER = "an object with the id of the caller, such as { clientId: 'shop' }"

/** @throws BrokerError ARGUMENT_INVALID */
function refuse(argument: string, value: unknown, allowed: string): never {
  const problem = value === undefined ? 'it is missing' : shown(value)
  throw new BrokerError('ARGUMENT_INVALID', `invalid argument ${argument}: ${problem}; allowed is ${allowed}`, {
    argument,
    allowed,
  })
}
