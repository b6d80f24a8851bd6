import type { Tags } from './message.ts'

/** Tags that begin so tell where a dead letter came from. Engines alone set them (C2). */
const RESERVED = 'dlq_'

/** What a user's tag with such a name is kept under. */
const USER_PREFIX = 'user_'

/** The tags of a message on its way into a queue: a user's own `dlq_*` become `user_dlq_*`, so that nobody can make up a dead letter. */
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
