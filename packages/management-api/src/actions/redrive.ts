import { isBrokerError } from '@signalbox/broker-core'
import type { Broker, QueueDelivery } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { Operator } from '../access/operator.ts'
import { defineAction, ofType, STRICT } from './action.ts'

/** The lease of the dead letters while they are sent again, in ms. Sending takes a fraction of it. */
const LEASE_MS = 120_000

/** The number of messages sent concurrently, so that they share commits. */
const TOGETHER = 64

/** The most bytes of dead letters in memory. */
const MAX_BYTES = 32 * 1024 * 1024

export const redriveDeadLetters = defineAction({
  name: 'redrive_dead_letters',
  summary:
    'Sends dead letters to the queues they came from, then removes them from the dead-letter queue. A crash in between may duplicate a message; no message is lost.',
  input: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      max_messages: Type.Optional(
        Type.Integer({ description: 'The most messages to send back.', minimum: 1, maximum: 1000, default: 100 }),
      ),
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    redriven: Type.Integer({ minimum: 0, description: 'The number of messages sent back.' }),
    left: Type.Array(
      Type.Object({
        id: Type.String({ description: 'The id of a message that remains in the dead-letter queue.' }),
        reason: Type.String(),
      }),
    ),
  }),
  target: ofType('queues'),
  async run({ channel, max_messages: maxMessages = 100 }, { broker, services, operator }) {
    await broker.channels.info('queues', channel)
    const deliveries = await broker.queues.receive(channel, { maxMessages, maxBytes: MAX_BYTES, leaseMs: LEASE_MS })
    const left: { id: string; reason: string }[] = []
    let redriven = 0
    for (let at = 0; at < deliveries.length; at += TOGETHER) {
      const group = deliveries.slice(at, at + TOGETHER)
      const problems = await Promise.all(
        group.map((delivery) => sendBack(services.broker, delivery, channel, operator)),
      )
      const sent = group.filter((_, i) => problems[i] === undefined).map(({ receipt }) => receipt)
      const kept = group.filter((_, i) => problems[i] !== undefined).map(({ receipt }) => receipt)
      if (sent.length > 0) await broker.queues.ack(sent)
      if (kept.length > 0) await broker.queues.nack(kept)
      redriven += sent.length
      for (const [i, { message }] of group.entries()) {
        const reason = problems[i]
        if (reason !== undefined) left.push({ id: message.id, reason })
      }
    }
    return { channel, redriven, left }
  },
  detail: ({ redriven, left }) => `${redriven} messages sent back, ${left.length} left`,
})

/**
 * Sends a dead letter on behalf of its first sender, only if the policy allows that sender to send:
 * a forged source must not extend the forger's permissions. The message may be received as often as
 * before, and then returns to this queue. Returns the reason if it was not sent.
 */
async function sendBack(
  broker: Broker,
  { message }: QueueDelivery,
  deadLetterQueue: string,
  { address }: Operator,
): Promise<string | undefined> {
  const { dlq_source: source, dlq_reason, dlq_receive_count: count, ...tags } = message.tags
  if (source === undefined || dlq_reason === undefined) return 'it is not a dead letter: it has no tag dlq_source'
  const sender = new Operator({ clientId: message.clientId }, address)
  try {
    const { body, metadata } = message
    const maxReceiveCount = Number(count)
    const again = Number.isSafeInteger(maxReceiveCount) && maxReceiveCount > 0 && source !== deadLetterQueue
    await broker.onBehalfOf(sender).queues.send(source, {
      body,
      metadata,
      tags,
      // Its first send is known by the tag message_id. The queue would drop the message as a repeat of that.
      deduplicationKey: null,
      ...(again ? { maxReceiveCount, deadLetterQueue } : {}),
    })
    return undefined
  } catch (error) {
    if (isBrokerError(error)) return `${error.code}: ${error.message}`
    throw error
  }
}
