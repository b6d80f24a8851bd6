import { isReservedChannel } from '@signalbox/broker-core'
import type { QueueDelivery, QueueMessage } from '@signalbox/broker-core'
import {
  ANSWER_LEASE_MS,
  argument,
  encodedBody,
  leaseForAnswer,
  settlementOf,
  shownValue,
} from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { answerLimit, messageCount, queueMessage, queueMessageData } from '../messages/shown-message.ts'
import { defineAction, ofType, STRICT } from '../operation.ts'
import type { ActionCall, Operation } from '../operation.ts'

const sendQueueMessage = defineAction({
  name: 'send_queue_message',
  summary: 'Stores a message in a queue, as queue_send does.',
  input: Type.Object(
    {
      channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`),
      body: argument.text('The payload of the message: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
      delay_seconds: argument.seconds('Seconds until the message becomes visible; 0 means immediately.'),
      expiration_seconds: argument.seconds('Seconds until the message is dropped; 0 means never.'),
      max_receive_count: Type.Optional(
        Type.Integer({
          description: 'Receives before the message moves to dead_letter_queue; 0 means unlimited.',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
      ),
      dead_letter_queue: argument.optionalChannel(
        'The queue to which the message moves after max_receive_count receives; empty means none.',
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String({ description: 'The id of the message.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The number of the message in the queue.' }),
    duplicate: Type.Boolean({
      description: 'True if a message with this message_id tag was sent before: nothing new was stored.',
    }),
  }),
  target: ofType('queues'),
  rule: ({ channel, dead_letter_queue }) =>
    channel === dead_letter_queue && !isReservedChannel(channel)
      ? { argument: 'dead_letter_queue', given: shownValue(channel), allowed: 'another queue than channel' }
      : undefined,
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {} } = args
    const { id, sequence, duplicate } = await broker.queues.send(channel, {
      body: await encodedBody(args, broker.caller),
      metadata,
      tags,
      delayMs: (args.delay_seconds ?? 0) * 1000,
      expirationMs: (args.expiration_seconds ?? 0) * 1000,
      maxReceiveCount: args.max_receive_count ?? 0,
      deadLetterQueue: args.dead_letter_queue ?? '',
    })
    return { channel, id, sequence, duplicate }
  },
  detail: ({ id }) => `message ${id}`,
})

const messagesData = Type.Object({
  channel: Type.String(),
  messages: Type.Array(queueMessageData),
  more: Type.Optional(
    Type.Literal(true, { description: 'Present if messages that did not fit into the answer stayed in the queue.' }),
  ),
})

function messagesOf(channel: string, messages: readonly QueueMessage[], more: boolean) {
  return { channel, messages: messages.map(queueMessage), ...(more ? { more: true as const } : {}) }
}

const messagesDetail = ({ messages }: { messages: readonly unknown[] }): string => messageCount(messages.length)

const receiveQueueMessages = defineAction({
  name: 'receive_queue_messages',
  summary: 'Receives messages and removes them from the queue, as queue_receive does.',
  input: Type.Object(
    {
      channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`),
      max_messages: argument.maxMessages('The most messages to receive, 1 to 100.'),
      wait_timeout_seconds: Type.Optional(
        Type.Integer({
          description: 'The time to wait for a first message, in seconds.',
          minimum: 1,
          maximum: 60,
          default: 5,
        }),
      ),
    },
    STRICT,
  ),
  output: messagesData,
  target: ofType('queues'),
  async run({ channel, max_messages, wait_timeout_seconds = 5 }, call) {
    let more = false
    const onMore = (): void => void (more = true)
    const deliveries = await receive(channel, max_messages, wait_timeout_seconds * 1000, onMore, call)
    call.settleLater(settlementOf(call.broker.queues, deliveries))
    return messagesOf(
      channel,
      deliveries.map(({ message }) => message),
      more,
    )
  },
  detail: messagesDetail,
})

/** Leases messages. Returns an empty list if the request was aborted. */
async function receive(
  channel: string,
  maxMessages: number,
  waitMs: number,
  onMore: () => void,
  { broker, signal, hold }: ActionCall,
): Promise<readonly QueueDelivery[]> {
  const input = { ...(await answerLimit(hold, onMore)), maxMessages, waitMs, leaseMs: ANSWER_LEASE_MS, signal }
  try {
    return await leaseForAnswer(broker.queues, channel, input)
  } catch (error) {
    if (signal.aborted && error === signal.reason) return []
    throw error
  }
}

const peekQueueMessages = defineAction({
  name: 'peek_queue_messages',
  summary: 'Shows the next messages of a queue without removing them, as queue_peek does.',
  input: Type.Object(
    {
      channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`),
      max_messages: argument.maxMessages('The most messages to show, 1 to 100.'),
    },
    STRICT,
  ),
  output: messagesData,
  target: ofType('queues'),
  async run({ channel, max_messages }, { broker, hold }) {
    let more = false
    const limit = await answerLimit(hold, () => (more = true))
    const messages = await broker.queues.peek(channel, { ...limit, maxMessages: max_messages })
    return messagesOf(channel, messages, more)
  },
  detail: messagesDetail,
})

export const queueOperations: readonly Operation[] = [sendQueueMessage, receiveQueueMessages, peekQueueMessages]
