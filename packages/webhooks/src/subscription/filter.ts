import { attributesOf, compileCesql } from '@signalbox/broker-core/internal'

import type { Item } from '../sources/source.ts'
import type { SubscriptionRecord } from './subscription-record.ts'

/** Returns the test for the items that a subscription wants: all, or those for which its filter is true. */
export function matcherOf({ type, channel, filter }: SubscriptionRecord): (item: Item) => boolean {
  if (filter === undefined) return () => true
  const expression = compileCesql(filter)
  return ({ message }) => {
    const { value, error } = expression.evaluate(attributesOf(type, channel, message))
    return error === undefined && value === true
  }
}
