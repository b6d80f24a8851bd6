import type { OutgoingMessage } from './message.ts'

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
