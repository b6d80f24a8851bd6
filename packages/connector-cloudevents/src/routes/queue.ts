import type { QueueDelivery, QueueMessage } from '@signalbox/broker-core'
import { ANSWER_LEASE_MS, leaseForAnswer, settlementOf } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { CallEnded } from '../calls.ts'
import { invalidParameters } from '../errors.ts'
import { cloudEventText } from '../event/event-text.ts'
import type { CeAnswer } from '../ce-exchange.ts'
import { ANSWERS } from './answers.ts'
import { channel, receipts, STRICT } from './parameter-types.ts'
import type { CeRouteCall } from './route.ts'
import { defineCeRoute } from './route.ts'

/** Size of an answer after which no further message is added, in bytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** The longest lease, and the longest delay of a rejected message, in seconds: twelve hours. */
const MAX_LEASE_SECONDS = 43_200

export const queueReceive = defineCeRoute({
  name: 'queue/receive',
  answer: ANSWERS.received,
  method: 'POST',
  summary: 'Receives messages of a queue, oldest first; removes them, or leases them with `visibility_seconds`.',
  body: 'ignored',
  endsAtShutdown: true,
  query: Type.Object(
    {
      channel: channel('The queue.'),
      max_messages: Type.Optional(
        Type.Integer({ description: 'Maximum number of messages.', minimum: 1, maximum: 1000, default: 1 }),
      ),
      wait_timeout: Type.Optional(
        Type.Integer({ description: 'Seconds to wait for a first message.', minimum: 0, maximum: 60, default: 5 }),
      ),
      is_peek: Type.Optional(
        Type.Boolean({
          description: 'Returns the next messages without receiving them, and does not wait.',
          default: false,
        }),
      ),
      visibility_seconds: Type.Optional(
        Type.Integer({
          description:
            'Lease in seconds: `ack` or `nack` each message by its receipt in that time, or it is delivered again. 0 removes the messages.',
          minimum: 0,
          maximum: MAX_LEASE_SECONDS,
          default: 0,
        }),
      ),
    },
    STRICT,
  ),
  async run({ channel, max_messages = 1, wait_timeout = 5, is_peek = false, visibility_seconds = 0 }, call) {
    const { queues } = call.broker
    if (is_peek) {
      if (visibility_seconds > 0) {
        throw invalidParameters([
          {
            parameter: 'visibility_seconds',
            given: `"${visibility_seconds}"`,
            allowed: 'left out with is_peek, which leases no messages',
          },
        ])
      }
      const messages = await queues.peek(channel, { maxMessages: max_messages, maxBytes: MAX_ANSWER_BYTES })
      return received(messages.map((message) => ({ message })))
    }
    const leaseMs = visibility_seconds > 0 ? visibility_seconds * 1000 : ANSWER_LEASE_MS
    const deliveries = await receive(channel, max_messages, wait_timeout, leaseMs, call)
    if (visibility_seconds > 0) return received(deliveries)
    const answer = received(deliveries.map(({ message }) => ({ message })))
    const settlement = settlementOf(queues, deliveries)
    return settlement === undefined ? answer : { ...answer, settlement }
  },
})

/** Receives messages; none if the server shuts down. */
async function receive(
  channel: string,
  maxMessages: number,
  waitSeconds: number,
  leaseMs: number,
  { broker, signal }: CeRouteCall,
): Promise<readonly QueueDelivery[]> {
  const input = { maxMessages, maxBytes: MAX_ANSWER_BYTES, waitMs: waitSeconds * 1000, leaseMs, signal }
  try {
    return await leaseForAnswer(broker.queues, channel, input)
  } catch (error) {
    if (error instanceof CallEnded && error.reason === 'shutdown') return []
    throw error
  }
}

function received(deliveries: readonly { readonly message: QueueMessage; readonly receipt?: string }[]): CeAnswer {
  const messages = deliveries.map(({ message, receipt }) => {
    const { text } = cloudEventText('queues', message)
    const withReceipt = receipt === undefined ? '' : `"receipt":${JSON.stringify(receipt)},`
    return `{"event":${text},${withReceipt}"receive_count":${message.receiveCount}}`
  })
  const count = messages.length
  return {
    status: 200,
    message: `${count} ${count === 1 ? 'message' : 'messages'}`,
    data: `{"messages":[${messages.join(',')}]}`,
  }
}

export const queueAck = defineCeRoute({
  name: 'queue/ack',
  answer: ANSWERS.settled,
  method: 'POST',
  summary: 'Acknowledges leased messages, which removes them, and answers after that is durable.',
  body: 'ignored',
  query: Type.Object({ receipt: receipts('A receipt from `queue/receive`; repeat it for several.') }, STRICT),
  run: ({ receipt }, { broker }) => settle('acknowledged', receipt, () => broker.queues.ack(receipt)),
})

export const queueNack = defineCeRoute({
  name: 'queue/nack',
  answer: ANSWERS.settled,
  method: 'POST',
  summary: 'Rejects leased messages: each becomes visible again at its place, and the receive counts.',
  body: 'ignored',
  query: Type.Object(
    {
      receipt: receipts('A receipt from `queue/receive`; repeat it for several.'),
      delay_seconds: Type.Optional(
        Type.Integer({
          description: 'Time until the messages become visible, in seconds; 0 means at once.',
          minimum: 0,
          maximum: MAX_LEASE_SECONDS,
          default: 0,
        }),
      ),
    },
    STRICT,
  ),
  run: ({ receipt, delay_seconds = 0 }, { broker: { queues } }) =>
    settle('rejected', receipt, () =>
      // The end of a lease returns the message and counts as a receive, as a nack does.
      delay_seconds === 0 ? queues.nack(receipt) : queues.extend(receipt, delay_seconds * 1000),
    ),
})

export const queueExtend = defineCeRoute({
  name: 'queue/extend',
  answer: ANSWERS.settled,
  method: 'POST',
  summary: 'Sets the end of leases, for work that takes longer. Call it before the leases end.',
  body: 'ignored',
  query: Type.Object(
    {
      receipt: receipts('A receipt from `queue/receive`; repeat it for several.'),
      visibility_seconds: Type.Integer({
        description: 'The lease from now, in seconds.',
        minimum: 1,
        maximum: MAX_LEASE_SECONDS,
      }),
    },
    STRICT,
  ),
  run: ({ receipt, visibility_seconds }, { broker }) =>
    settle('leased again', receipt, () => broker.queues.extend(receipt, visibility_seconds * 1000)),
})

async function settle(
  done: string,
  receipts: readonly string[],
  call: () => Promise<{ readonly settled: number; readonly lost: readonly string[] }>,
): Promise<CeAnswer> {
  const { settled, lost } = await call()
  const text = `${settled} of ${receipts.length} messages ${done}`
  return {
    status: 200,
    rejected: lost.length > 0,
    message:
      lost.length === 0
        ? text
        : `${text}; the other receipts are unknown, already settled, of another client, or their lease has ended`,
    data: JSON.stringify({ settled, lost }),
  }
}

export const queueAckAll = defineCeRoute({
  name: 'queue/ack_all',
  answer: ANSWERS.drained,
  method: 'POST',
  summary: 'Purges a queue: removes every message that is not leased, including delayed ones.',
  body: 'ignored',
  query: Type.Object({ channel: channel('The queue.') }, STRICT),
  async run({ channel }, { broker }) {
    const count = await broker.queues.purge(channel)
    return {
      status: 200,
      message: `${count} ${count === 1 ? 'message' : 'messages'} removed`,
      data: JSON.stringify({ count }),
    }
  },
})
