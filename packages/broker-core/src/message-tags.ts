import type { OutgoingMessage, Tags } from './message.ts'

/**
 * Returns the id by which an engine recognizes a repeated send, or no id if the message has neither a tag `message_id`
 * nor a key, or if the key is `null`. The id includes the sender, so that a guessed `message_id` cannot suppress the message of another sender.
 * The length of the ClientID separates the senders, even if the ids contain blanks. Keys and tags never match.
 */
export function deduplicationOf(
  { clientId, tags }: OutgoingMessage,
  key?: string | null,
): { readonly deduplicationId?: string } {
  if (key === null) return {}
  const messageId = tags['message_id']
  const sender = `${clientId.length} ${clientId}`
  if (messageId) return { deduplicationId: `${sender} ${messageId}` }
  return key ? { deduplicationId: `key ${sender} ${key}` } : {}
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
