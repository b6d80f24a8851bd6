import type { OutgoingMessage, Tags } from './message.ts'

/**
 * Returns the id by which an engine recognizes a repeated send; undefined if the message has neither a tag `message_id`
 * nor a key, or if the key is `null`. The id includes the sender, so that a guessed `message_id` cannot suppress the
 * message of another sender. The length of the ClientID separates the senders, even if the ids contain blanks. Keys and
 * tags never match.
 * @param until The time until which a repeat is recognized, in ms since the epoch. @default two minutes
 */
export function deduplicationIdOf(
  { clientId, tags }: OutgoingMessage,
  key?: string | null,
  until?: number,
): string | undefined {
  if (key === null) return undefined
  const messageId = tags['message_id']
  const sender = `${clientId.length} ${clientId}`
  const id = messageId ? `${sender} ${messageId}` : key ? `key ${sender} ${key}` : undefined
  return id === undefined || until === undefined
    ? id
    : `${KEPT_UNTIL}${String(until).padStart(UNTIL_DIGITS, '0')} ${id}`
}

/** The begin of an id that is remembered until a time, which follows. */
export const KEPT_UNTIL = 'until '

/** The digits of the time, which are enough for the year 5138. */
export const UNTIL_DIGITS = 14

/** Returns the time until which an id of {@link deduplicationIdOf} is remembered; 0 if it says none. */
export function keptUntil(deduplicationId: string): number {
  if (!deduplicationId.startsWith(KEPT_UNTIL)) return 0
  return Number(deduplicationId.slice(KEPT_UNTIL.length, KEPT_UNTIL.length + UNTIL_DIGITS))
}

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
