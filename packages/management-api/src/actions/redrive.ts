import { isBrokerError } from '@signalbox/broker-core'
import type { Broker, QueueDelivery } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { Operator } from '../access/operator.ts'
import { defineAction, ofType, STRICT } from './action.ts'

/** How long the dead letters are held while they are sent again, in milliseconds; it takes a fraction of that. */
const LEASE_MS = 120_000

/** Sent at the same time, so that they share commits. */
const TOGETHER = 64

/** The bytes of dead letters that are in memory at a time. */
const MAX_BYTES = 32 * 1024 * 1024

export const redriveDeadLetters = defineAction({
  name: 'redrive_dead_letters',
  summary:
    'Sends dead letters back to the queues they came from, and then takes them out of the dead-letter queue: one may come twice after a crash in between, none is lost.',
  input: Type.Object(
    {
      channel: argument.channel('The dead-letter queue.'),
      max_messages: Type.Optional(
        Type.Integer({ description: 'The most messages to send back.', minimum: 1, maximum: 1000, default: 100 }),
      ),
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    redriven: Type.Integer({ minimum: 0, description: 'How many went back.' }),
    left: Type.Array(
      Type.Object({
        id: Type.String({ description: 'The id of a message that stays in the dead-letter queue.' }),
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
 * Sends a dead letter in the name of its first sender, and only where the policy lets that sender send: a forged source must
 * not reach further than who forged it. It may be received as often as before, and then comes back here.
 */
async function sendBack(
  broker: Broker,
  { message }: QueueDelivery,
  deadLetterQueue: string,
  { address }: Operator,
): Promise<string | undefined> {
  const { dlq_source: source, dlq_reason, dlq_receive_count: count, ...tags } = message.tags
  if (source === undefined || dlq_reason === undefined) return 'it is no dead letter: it has no tag dlq_source'
  const sender = new Operator({ clientId: message.clientId }, address)
  try {
    const { body, metadata } = message
    const maxReceiveCount = Number(count)
    const again = Number.isSafeInteger(maxReceiveCount) && maxReceiveCount > 0 && source !== deadLetterQueue
    const { duplicate } = await broker.onBehalfOf(sender).queues.send(source, {
      body,
      metadata,
      tags,
      ...(again ? { maxReceiveCount, deadLetterQueue } : {}),
    })
    // Its queue has seen the message_id within two minutes and stored nothing: taken out here, it would be lost.
    return duplicate ? 'its message_id was sent within the last two minutes: try again later' : undefined
  } catch (error) {
    if (isBrokerError(error)) return `${error.code}: ${error.message}`
    throw error
  }
}
