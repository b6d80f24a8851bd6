import type { OutgoingMessage } from './message.ts'

/**
 * Returns the id by which an engine recognizes a repeated send, or no id if the message has no tag `message_id`. The id
 * includes the sender, so that a guessed `message_id` cannot suppress the message of another sender. The length of the
 * ClientID separates the senders, even if the ids contain blanks.
 */
export function deduplicationOf({ clientId, tags }: OutgoingMessage): { readonly deduplicationId?: string } {
  const messageId = tags['message_id']
  return messageId ? { deduplicationId: `${clientId.length} ${clientId} ${messageId}` } : {}
}
