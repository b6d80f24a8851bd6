import type { Tags } from './message.ts'

/** The prefix of the tags that describe the origin of a dead letter. Only engines set them (C2). */
const RESERVED = 'dlq_'

/** The prefix that a user's tag gets if its name is reserved. */
const USER_PREFIX = 'user_'

/**
 * Returns the tags of a message sent to a queue. A user's `dlq_*` tags become `user_dlq_*`, so that no sender can forge
 * a dead letter.
 */
export function queueTags(tags: Tags): Tags {
  for (const key of Object.keys(tags)) if (key.startsWith(RESERVED)) return renamed(tags)
  return tags
}

function renamed(tags: Tags): Tags {
  const names = new Set(Object.keys(tags))
  const entries = Object.entries(tags).map(([key, value]): [string, string] => {
    if (!key.startsWith(RESERVED)) return [key, value]
    let name = USER_PREFIX + key
    while (names.has(name)) name = USER_PREFIX + name
    names.add(name)
    return [name, value]
  })
  return Object.fromEntries(entries)
}
