import type { BrokerHandle, Tags } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

import type { Item } from '../sources/source.ts'

/** Returns the queue of the messages that a subscription could not deliver. */
export function deadLetterQueueOf(id: string): string {
  return `webhooks.${id}.dead-letters`
}

/** The reason why a message was not delivered. */
export interface Failure {
  readonly reason: string
  /** The status of the last answer; `undefined` if there was none. */
  readonly status?: number | undefined
  /** The first 4 KiB of the last answer. */
  readonly answer?: string | undefined
  /** The failed attempts, of all starts and nodes. */
  readonly attempts: number
}

const NOTHING = new Uint8Array(0)

/**
 * Stores a message in the dead-letter queue of its subscription, with its tags and the reason. The answer is left out if
 * the message would be too large with it, and then all tags of the failure. A message of a connector's source that is
 * still too large leaves its reason alone.
 * @throws BrokerError QUEUE_FULL, ENGINE_UNAVAILABLE
 */
export async function storeDeadLetter(system: BrokerHandle, id: string, item: Item, failure: Failure): Promise<void> {
  const { message, sequence } = item
  const tags = message.tags
  const reason: Tags = {
    webhook_subscription: id,
    webhook_source: message.channel,
    webhook_reason: failure.reason,
    webhook_attempts: String(failure.attempts),
    ...(sequence > 0 ? { webhook_sequence: String(sequence) } : {}),
    ...(failure.status === undefined ? {} : { webhook_status: String(failure.status) }),
  }
  const answer = failure.answer ? { webhook_answer: failure.answer } : {}
  const { body, metadata } = message
  const letters = [{ ...reason, ...answer }, reason, {}].map((more) => ({ body, metadata, tags: { ...tags, ...more } }))
  // A message of a connector's source may be larger than those of channels.
  if (item.position !== undefined) letters.push({ body: NOTHING, metadata: '', tags: reason })
  for (const letter of letters) {
    try {
      await system.queues.send(deadLetterQueueOf(id), {
        ...letter,
        deduplicationKey: `${id} ${item.name}`,
      })
      return
    } catch (error) {
      if (!isBrokerError(error, 'MESSAGE_TOO_LARGE')) throw error
    }
  }
  throw new Error('a message of a channel did not fit into its dead-letter queue')
}
