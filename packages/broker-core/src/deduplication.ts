import type { OutgoingMessage } from './message.ts'

/**
 * The id by which an engine recognizes a repeated send (C5), or nothing when the message has no tag `message_id`. It includes the
 * sender, so that a guessed `message_id` cannot swallow somebody else's message. The length keeps two senders apart whatever
 * characters their ids hold.
 */
export function deduplicationOf({ clientId, tags }: OutgoingMessage): { readonly deduplicationId?: string } {
  const messageId = tags['message_id']
  return messageId ? { deduplicationId: `${clientId.length} ${clientId} ${messageId}` } : {}
}
