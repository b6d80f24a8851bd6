import type { SubscribeOptions } from '../engine/event-engine.ts'
import { BrokerError } from '../errors.ts'

/** Returns the error for the option `durable` of a subscription that cannot have it. */
export function durableRefusal(problem: string, allowed: string): BrokerError {
  return new BrokerError('ARGUMENT_INVALID', `invalid argument durable: ${problem}`, { argument: 'durable', allowed })
}

/**
 * Refuses `durable` for messages that are not stored: a group that expects its position to survive would miss messages
 * without notice. The types have no such option, but JavaScript programs may pass it. @throws BrokerError
 * ARGUMENT_INVALID
 */
export function assertNotDurable(options: SubscribeOptions & { readonly durable?: unknown }): void {
  if (options.durable === undefined || options.durable === false) return
  throw durableRefusal('only groups of events stores have a position; use an events store', 'for events stores only')
}
