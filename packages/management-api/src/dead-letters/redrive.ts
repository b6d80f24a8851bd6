import { isBrokerError } from '@signalbox/broker-core'
import type { Broker, BrokerHandle, QueueDelivery, QueueMessage, Tags } from '@signalbox/broker-core'

import { Operator } from '../access/operator-surface.ts'
import { editedMessage } from '../messages/edited-message.ts'
import type { MessageEdit } from '../messages/edited-message.ts'
import { oldestFirst } from '../messages/stored-messages.ts'
import type { MessageTrail } from '../trace/message-trail.ts'

/** The lease of the dead letters while they are sent again, in ms. Sending takes a fraction of it. */
const LEASE_MS = 120_000

/** The leases of messages that stay are renewed after this time, in ms. */
const RENEW_MS = 40_000

/** The number of messages sent concurrently, so that they share commits. */
const TOGETHER = 64

/** The most messages, and about the most bytes, in one step. */
const STEP = 512
const STEP_BYTES = 32 * 1024 * 1024

/** The most messages that one redrive looks at. */
export const MAX_REDRIVEN = 100_000

/** The most messages that one redrive keeps leased because they stay. */
const MAX_KEPT = 10_000

/** The most messages whose reasons are listed. */
const MAX_LISTED = 1_000

interface LeftMessage {
  readonly id: string
  readonly reason: string
}

/** The state of a redrive, which changes while it runs. */
export class RedriveProgress {
  /** Messages looked at. */
  examined = 0
  /** Messages sent back. */
  redriven = 0
  /** Selected messages that stay, and the reasons of the first ones. */
  leftCount = 0
  readonly left: LeftMessage[] = []
  /** Selected messages sent back, by their queue. */
  readonly bySource = new Map<string, number>()

  /** @param reason undefined if the message was sent back */
  add(message: QueueMessage, reason: string | undefined): void {
    if (reason !== undefined) {
      this.leftCount++
      if (this.left.length < MAX_LISTED) this.left.push({ id: message.id, reason })
      return
    }
    this.redriven++
    const { source = '' } = deadLetterOf(message) ?? {}
    this.bySource.set(source, (this.bySource.get(source) ?? 0) + 1)
  }

  get attempted(): number {
    return this.redriven + this.leftCount
  }
}

export interface RedriveRequest {
  /** The dead-letter queue. */
  readonly channel: string
  readonly selection: Selection
  /** The most selected messages. */
  readonly maxMessages: number
  /** The most messages to look at: those that are in the queue when the redrive begins. */
  readonly maxExamined: number
  /** The sequence of the last message to look at. Later ones arrived after the start, and stay. @default all */
  readonly lastSequence?: number
  readonly operator: Operator
  /** The operator's handle. */
  readonly queues: BrokerHandle['queues']
  readonly broker: Broker
  readonly signal?: AbortSignal
  /** Changes of the messages, which then come from the operator. @default none */
  readonly edit?: MessageEdit
  readonly progress: RedriveProgress
  readonly trail: MessageTrail
}

/**
 * Sends selected dead letters to the queues they came from, and then removes them. The others are
 * leased until the end, so that no message is looked at twice, and then return to their positions.
 */
export async function redrive(request: RedriveRequest): Promise<void> {
  const { channel, lastSequence = Infinity, maxExamined, maxMessages, progress, queues, selection, signal } = request
  const isSelected = selectionMatcher(selection)
  /** The receipts of the messages that are leased and not sent. */
  const held = new Set<string>()
  let renewedAt = Date.now()
  try {
    while (progress.examined < maxExamined && progress.attempted < maxMessages && held.size < MAX_KEPT) {
      if (signal?.aborted) break
      const most = Math.min(STEP, maxExamined - progress.examined, maxMessages - progress.attempted)
      const received = await queues.receive(channel, { maxMessages: most, maxBytes: STEP_BYTES, leaseMs: LEASE_MS })
      for (const { receipt } of received) held.add(receipt)
      // The queue is in order: a step without an older message is the end.
      const deliveries = received.filter(({ message }) => message.sequence <= lastSequence)
      if (deliveries.length === 0) break
      progress.examined += deliveries.length
      await sendBackAll(
        deliveries.filter(({ message }) => isSelected(message)),
        request,
        held,
      )
      if (Date.now() - renewedAt > RENEW_MS && held.size > 0) {
        await queues.extend([...held], LEASE_MS)
        renewedAt = Date.now()
      }
      if (selection.ids !== undefined && progress.attempted === new Set(selection.ids).size) break
    }
  } catch (error) {
    // The first error is the reason; without an engine the leases end by their time-out.
    await rejectAll(queues, held).catch(() => {})
    throw error
  }
  await rejectAll(queues, held)
}

async function rejectAll(queues: RedriveRequest['queues'], held: ReadonlySet<string>): Promise<void> {
  if (held.size > 0) await queues.nack([...held], { delayMs: 0 })
}

/**
 * Sends messages back, and removes them from the held ones. An unexpected failure of one ends the redrive
 * after the others of its group.
 */
async function sendBackAll(
  deliveries: readonly QueueDelivery[],
  request: RedriveRequest,
  held: Set<string>,
): Promise<void> {
  const { progress, queues } = request
  for (let at = 0; at < deliveries.length; at += TOGETHER) {
    const group = deliveries.slice(at, at + TOGETHER)
    const outcomes = await Promise.allSettled(group.map(({ message }) => sendBack(message, request)))
    const sent: string[] = []
    for (const [i, { message, receipt }] of group.entries()) {
      const outcome = outcomes[i]
      if (outcome?.status !== 'fulfilled') continue
      progress.add(message, outcome.value)
      if (outcome.value !== undefined) continue
      held.delete(receipt)
      sent.push(receipt)
    }
    if (sent.length > 0) await queues.ack(sent)
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}

const NOT_A_DEAD_LETTER = 'it is not a dead letter: it has no tag dlq_source'

/**
 * Sends a dead letter on behalf of its first sender, only if the policy allows that sender to send:
 * a forged source must not extend the forger's permissions. An edited message comes from the
 * operator, because its sender did not write it. The message may be received as often as before, and
 * then returns to this queue. Returns the reason if it was not sent.
 */
async function sendBack(
  message: QueueMessage,
  { broker, channel, edit, operator, queues, trail }: RedriveRequest,
): Promise<string | undefined> {
  const letter = deadLetterOf(message)
  if (letter === undefined) return NOT_A_DEAD_LETTER
  const { source, receives, tags } = letter
  const { body, metadata, clientId } = message
  const sender = new Operator({ clientId }, operator.address)
  const target = edit === undefined ? broker.onBehalfOf(sender).queues : queues
  try {
    const { id: newId } = await target.send(source, {
      // Its first send is known by the tag message_id. The queue would drop the message as a repeat of that.
      ...(edit === undefined ? { body, metadata, tags, deduplicationKey: null } : editedMessage(message, edit)),
      ...(receives > 0 && source !== channel ? { maxReceiveCount: receives, deadLetterQueue: channel } : {}),
    })
    trail.redriven(message.id, source, newId, operator.clientId)
    return undefined
  } catch (error) {
    if (isBrokerError(error)) return `${error.code}: ${error.message}`
    throw error
  }
}

/** Counts what a {@link redrive} would do now, and changes nothing. */
export async function rehearseRedrive(request: Omit<RedriveRequest, 'queues'>, handle: BrokerHandle): Promise<void> {
  const { broker, channel, maxExamined, maxMessages, progress, selection } = request
  const isSelected = selectionMatcher(selection)
  for await (const batch of oldestFirst(handle, { type: 'queues', channel })) {
    for (const message of batch) {
      if (progress.examined === maxExamined || progress.attempted === maxMessages) return
      progress.examined++
      if (!('receiveCount' in message) || !isSelected(message)) continue
      progress.add(message, obstacle(broker, message))
    }
  }
}

/** Returns the reason for which a message would stay, as far as it is known before the send. */
function obstacle(broker: Broker, message: QueueMessage): string | undefined {
  const letter = deadLetterOf(message)
  if (letter === undefined) return NOT_A_DEAD_LETTER
  const { clientId } = message
  const { source } = letter
  if (broker.onBehalfOf({ clientId }).permits('send', 'queues', source)) return undefined
  return `FORBIDDEN: the policy does not let ${JSON.stringify(clientId)} send on queues ${JSON.stringify(source)}`
}

/** The origin of a dead letter. Only engines set it: a sender cannot forge the tags. */
interface DeadLetter {
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

/** The dead letters of a redrive. Without a member, every dead letter matches. */
interface Selection {
  readonly source?: string | undefined
  readonly reason?: string | undefined
  readonly ids?: readonly string[] | undefined
}

/** True if the selection has no condition. */
export function selectsAll({ source, reason, ids }: Selection): boolean {
  return source === undefined && reason === undefined && ids === undefined
}

/** Returns a test for the messages of a selection. */
function selectionMatcher({ source, reason, ids }: Selection): (message: QueueMessage) => boolean {
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
