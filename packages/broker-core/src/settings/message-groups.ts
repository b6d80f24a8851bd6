import { Buffer } from 'node:buffer'

import { BrokerError } from '../errors.ts'
import type { Tags } from '../message.ts'
import type { GroupSettings } from './channel-settings.ts'

/** The maximum size of a group's name, in bytes of UTF-8. */
const MAX_GROUP_BYTES = 256

/** The tags that name the group of a message, the first one first: the CloudEvents attribute, and the plain tag. */
const GROUP_TAGS = ['ce_partitionkey', 'group'] as const

/** Returns the group of a message; empty if it has none. A lone surrogate becomes U+FFFD, as in stored text. */
export function groupOf(tags: Tags): string {
  for (const tag of GROUP_TAGS) {
    const group = tags[tag]
    if (group) return group.toWellFormed()
  }
  return ''
}

/**
 * Returns the most leased messages of a group; Infinity if there is no limit. Messages without a group are unordered in
 * `ordered` mode, and share one group in `fair` mode.
 */
export function groupLimitOf({ mode, max_in_flight_per_group: limit }: GroupSettings, group: string): number {
  if (mode === 'ordered') return group === '' ? Infinity : 1
  return limit === 0 ? Infinity : limit
}

/**
 * Checks a message for a queue with groups.
 * @throws BrokerError MESSAGE_INVALID for a group that is too long, ARGUMENT_INVALID for a delay in an ordered queue
 */
export function assertGroup({ mode }: GroupSettings, tags: Tags, delayMs: number): void {
  const bytes = Buffer.byteLength(groupOf(tags))
  if (bytes > MAX_GROUP_BYTES) {
    const tag = GROUP_TAGS.find((name) => tags[name]) ?? 'group'
    const allowed = `a group of at most ${MAX_GROUP_BYTES} bytes`
    throw new BrokerError('MESSAGE_INVALID', `invalid message: tags.${tag} has ${bytes} bytes; it must be ${allowed}`, {
      field: `tags.${tag}`,
      allowed,
    })
  }
  if (mode === 'ordered' && delayMs > 0) {
    throw new BrokerError(
      'ARGUMENT_INVALID',
      'a message with a delay is refused, because the queue delivers groups in order; send it without a delay, or to another queue',
      { argument: 'delayMs', allowed: '0 in a queue with ordered groups' },
    )
  }
}
