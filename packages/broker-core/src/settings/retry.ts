import { BrokerError } from '../errors.ts'
import type { Tags } from '../message.ts'
import type { NackOptions } from '../engine/queue-engine.ts'
import { retryDelayMs } from './channel-settings.ts'
import type { RetrySettings } from './channel-settings.ts'
import type { SettingsTable } from './settings-table.ts'

/** The reason why a message is in a dead-letter queue: the value of its tag `dlq_reason`. */
export type DeadLetterReason = 'max_receive_count' | 'rejected' | 'expired'

/** The parts of a message that decide what happens to it after a receive. */
export interface ReceivedMessage {
  /** The name of its queue. */
  readonly channel: string
  /** The number of receives, including the one that ends. */
  readonly receiveCount: number
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
  /** `true` if the message came from another queue as a dead letter: it has the tag `dlq_source`. */
  readonly isDeadLetter: boolean
}

/** The outcome of a receive that ended without an ack. */
export interface MessageReturn {
  /** The queue that the message moves to; empty if it remains in its queue. */
  readonly deadLetterQueue: string
  readonly reason: DeadLetterReason
  /** The time until the message is visible again, in ms; 0 means immediately. */
  readonly delayMs: number
}

/** The limit that applies to a message, its own or that of its queue's retry policy. */
export interface RetryLimits {
  /** 0 means unlimited. */
  readonly maxReceiveCount: number
  /** Empty if there is none. */
  readonly deadLetterQueue: string
}

/**
 * Decides where a message goes after a receive that ended without an ack. An explicit delay wins over the policy's.
 * @throws BrokerError NO_DEAD_LETTER_QUEUE for a rejected message
 */
export function returnOf(
  settings: SettingsTable,
  message: ReceivedMessage,
  { delayMs, reject = false }: NackOptions = {},
): MessageReturn {
  const retry = policyOf(settings, message)
  const { maxReceiveCount, deadLetterQueue } = limitsOf(retry, message)
  const { channel, receiveCount } = message
  const isSpent = maxReceiveCount > 0 && receiveCount >= maxReceiveCount
  if (deadLetterQueue !== '' && (reject || isSpent)) {
    return { deadLetterQueue, reason: reject ? 'rejected' : 'max_receive_count', delayMs: 0 }
  }
  if (reject) throw noDeadLetterQueue(channel)
  const delay = delayMs ?? (retry === undefined ? 0 : retryDelayMs(retry, receiveCount))
  return { deadLetterQueue: '', reason: 'max_receive_count', delayMs: delay }
}

/** Returns the limit that applies to a message now. */
export function retryLimits(settings: SettingsTable, message: ReceivedMessage): RetryLimits {
  return limitsOf(policyOf(settings, message), message)
}

/** Returns whether the message came from another queue as a dead letter. */
export function isDeadLetter(tags: Tags): boolean {
  return tags['dlq_source'] !== undefined
}

function policyOf(settings: SettingsTable, { channel }: ReceivedMessage): RetrySettings | undefined {
  return settings.active ? settings.of('queues', channel).retry : undefined
}

function limitsOf(
  retry: RetrySettings | undefined,
  { channel, maxReceiveCount, deadLetterQueue, isDeadLetter }: ReceivedMessage,
): RetryLimits {
  // A policy must not move dead letters on: they wait for an operator.
  if (retry === undefined || isDeadLetter) return { maxReceiveCount, deadLetterQueue }
  const fromPolicy = retry.dead_letter_queue === channel ? '' : retry.dead_letter_queue
  return {
    maxReceiveCount: maxReceiveCount || retry.max_receive_count,
    deadLetterQueue: deadLetterQueue || fromPolicy,
  }
}

function noDeadLetterQueue(channel: string): BrokerError {
  return new BrokerError(
    'NO_DEAD_LETTER_QUEUE',
    `a message of the queue ${JSON.stringify(channel)} cannot be rejected: neither the message nor the retry policy of its queue names a dead-letter queue; nack it without reject, acknowledge it, or set a dead-letter queue in the policy`,
    { channel },
  )
}
