import { BrokerError } from './errors.ts'
import { shown } from './options.ts'

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
