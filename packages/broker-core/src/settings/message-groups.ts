import type { Tags } from '../message.ts'

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
