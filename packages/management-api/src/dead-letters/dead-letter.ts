import type { QueueMessage, Tags } from '@signalbox/broker-core'

/** The origin of a dead letter. Only engines set it: a sender cannot forge the tags. */
export interface DeadLetter {
  /** The queue that the message came from. */
  readonly source: string
  readonly reason: string
  /** The number of receives before it moved; 0 if it is not known. */
  readonly receives: number
  /** The tags of the message, without those of its origin. */
  readonly tags: Tags
}

/** Returns the origin of a dead letter; undefined for a message that was sent to the queue. */
export function deadLetterOf(message: QueueMessage): DeadLetter | undefined {
  const { dlq_source: source, dlq_reason: reason, dlq_receive_count: count, ...tags } = message.tags
  if (source === undefined || reason === undefined) return undefined
  const receives = Number(count)
  return { source, reason, receives: Number.isSafeInteger(receives) && receives > 0 ? receives : 0, tags }
}

/** Returns the tags of a message, without those of a dead letter's origin. */
export function withoutOrigin(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([key]) => !key.startsWith('dlq_')))
}

/** The dead letters of a redrive. Without a member, every dead letter matches. */
export interface Selection {
  readonly source?: string | undefined
  readonly reason?: string | undefined
  readonly ids?: readonly string[] | undefined
}

/** True if the selection has no condition. */
export function selectsAll({ source, reason, ids }: Selection): boolean {
  return source === undefined && reason === undefined && ids === undefined
}

/** Returns a test for the messages of a selection. */
export function selectionMatcher({ source, reason, ids }: Selection): (message: QueueMessage) => boolean {
  const wanted = ids && new Set(ids)
  return (message) => {
    if (wanted !== undefined && !wanted.has(message.id)) return false
    if (source === undefined && reason === undefined) return true
    const letter = deadLetterOf(message)
    return (
      letter !== undefined &&
      (source === undefined || letter.source === source) &&
      (reason === undefined || letter.reason === reason)
    )
  }
}
