import { attributesOf, compileCesql, Pace } from '@signalbox/broker-core/internal'

import type { Item } from '../sources/source.ts'
import type { SubscriptionRecord } from './subscription-record.ts'

/** All subscriptions share the time for filters: owners write them, and senders the texts that they read. */
const pace = new Pace()

/** Returns the items for which a subscription's filter is true. */
export async function wantedItems(filter: ItemFilter, items: readonly Item[]): Promise<readonly Item[]> {
  const wanted: Item[] = []
  for (const item of items) {
    while (pace.isOver) await pace.rest()
    if (pace.run(() => filter(item))) wanted.push(item)
  }
  return wanted
}

export type ItemFilter = (item: Item) => boolean

/** Compiles the filter of a subscription; undefined if it has none. */
export function filterOf({ type, channel, filter }: SubscriptionRecord): ItemFilter | undefined {
  if (filter === undefined) return undefined
  const expression = compileCesql(filter)
  return ({ message }) => {
    const { value, error } = expression.evaluate(attributesOf(type, channel, message))
    return error === undefined && value === true
  }
}
