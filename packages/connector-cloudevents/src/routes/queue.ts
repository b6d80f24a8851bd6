import type { BrokerHandle, QueueDelivery, QueueMessage, QueueReceiveInput } from '@signalbox/broker-core'
import { MAX_PAUSE_MS } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import { CallEnded } from '@signalbox/http-kit'
import type { HttpRequest } from '@signalbox/http-kit'
import {
  ANSWER_LEASE_MS,
  answerBound,
  leaseForAnswer,
  LONG_TEXT_BYTES,
  settlementOf,
  TextParts,
} from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { CeError, invalidParameters } from '../errors.ts'
import { longEventText } from '../event/event-text.ts'
import type { CeAnswer } from '../ce-exchange.ts'
import { ANSWERS } from './answers.ts'
import { channel, defineCeRoute, receipts, STRICT } from './route.ts'
import type { CeRouteCall } from './route.ts'

/** Size of an answer after which no further message is added, in bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** The longest lease, and the longest delay of a rejected message, in seconds: twelve hours. */
const MAX_LEASE_SECONDS = 43_200

/** The header of a nack: the answer of a service that asked for a pause can be passed on. */
const RETRY_AFTER_HEADERS = Type.Object({
  'Retry-After': Type.Optional(
    Type.String({
      description: `Time until the messages become visible: seconds from 0 to ${MAX_LEASE_SECONDS}, or an HTTP date at most that far ahead. \`delay_seconds\` wins.`,
    }),
  ),
})

export const queueReceive = defineCeRoute({
  name: 'queue/receive',
  output: ANSWERS.received,
  method: 'POST',
  summary: 'Receives messages of a queue, oldest first; removes them, or leases them with `visibility_seconds`.',
  body: 'ignored',
  endsAtShutdown: true,
  input: Type.Object(
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
    let more = false
    const limit = await answerBound(MAX_ANSWER_BYTES, call.exchange.hold, () => (more = true))
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
      const messages = await queues.peek(channel, { ...limit, maxMessages: max_messages })
      return received(
        messages.map((message) => ({ message })),
        more,
      )
    }
    const leaseMs = visibility_seconds > 0 ? visibility_seconds * 1000 : ANSWER_LEASE_MS
    const deliveries = await receive(
      channel,
      { ...limit, maxMessages: max_messages, waitMs: wait_timeout * 1000, leaseMs },
      call,
    )
    const settlement = settlementOf(queues, deliveries)
    if (visibility_seconds > 0) {
      // A client that did not get the receipts cannot settle the messages. Otherwise they wait for the client.
      const answer = received(deliveries, more)
      return settlement === undefined ? answer : { ...answer, settlement: { ...settlement, commit: async () => {} } }
    }
    const answer = received(
      deliveries.map(({ message }) => ({ message })),
      more,
    )
    return settlement === undefined ? answer : { ...answer, settlement }
  },
})

/** Receives messages; none if the server shuts down. */
async function receive(
  channel: string,
  input: Omit<QueueReceiveInput, 'signal'>,
  { broker, signal }: CeRouteCall,
): Promise<readonly QueueDelivery[]> {
  try {
    return await leaseForAnswer(broker.queues, channel, { ...input, signal })
  } catch (error) {
    if (error instanceof CallEnded && error.reason === 'shutdown') return []
    throw error
  }
}

function received(
  deliveries: readonly { readonly message: QueueMessage; readonly receipt?: string }[],
  more: boolean,
): CeAnswer {
  const events = deliveries.map(({ message, receipt }) => {
    const { text } = longEventText('queues', message)
    const withReceipt = receipt === undefined ? '' : `"receipt":${JSON.stringify(receipt)},`
    return { text, rest: `,${withReceipt}"receive_count":${message.receiveCount}}` }
  })
  const size = events.reduce((sum, { text }) => sum + (typeof text === 'string' ? text.length : Infinity), 0)
  const count = deliveries.length
  const counted = `${count} ${count === 1 ? 'message' : 'messages'}`
  const data = new TextParts().add('{"messages":[')
  for (const [i, { text, rest }] of events.entries()) {
    data
      .add(i === 0 ? '{"event":' : ',{"event":')
      .add(text)
      .add(rest)
  }
  data.add(more ? '],"more":true}' : ']}')
  return {
    status: 200,
    message: more ? `${counted}; others remain in the queue because the answer has its largest size` : counted,
    data: size < LONG_TEXT_BYTES ? String(data) : data,
  }
}

export const queueAck = defineCeRoute({
  name: 'queue/ack',
  output: ANSWERS.settled,
  method: 'POST',
  summary: 'Acknowledges leased messages, which removes them, and answers after that is durable.',
  body: 'ignored',
  input: Type.Object({ receipt: receipts('A receipt from `queue/receive`; repeat it for several.') }, STRICT),
  run: ({ receipt }, { broker }) => settle('acknowledged', receipt, () => broker.queues.ack(receipt)),
})

export const queueNack = defineCeRoute({
  name: 'queue/nack',
  output: ANSWERS.settled,
  method: 'POST',
  summary: 'Rejects leased messages, which counts as a receive. Each returns to its place or to its dead-letter queue.',
  body: 'ignored',
  headers: RETRY_AFTER_HEADERS,
  input: Type.Object(
    {
      receipt: receipts('A receipt from `queue/receive`; repeat it for several.'),
      delay_seconds: Type.Optional(
        Type.Integer({
          description:
            'Time until the messages become visible, in seconds; 0 means at once. Without it the header `Retry-After` decides, then the retry policy of the queue; without both it is 0.',
          minimum: 0,
          maximum: MAX_LEASE_SECONDS,
        }),
      ),
      reject: Type.Optional(
        Type.Boolean({
          description: 'Moves the messages to their dead-letter queue now, because no attempt can succeed.',
          default: false,
        }),
      ),
      pause: Type.Optional(
        channel(
          `A queue to pause for the same time, because a service that its receivers call is busy. Needs the permission to receive, and a delay of 1 to ${MAX_PAUSE_MS / 1000} seconds. Only extends a pause.`,
        ),
      ),
    },
    STRICT,
  ),
  async run({ receipt, delay_seconds, reject = false, pause }, { broker, exchange }) {
    if (reject) {
      const delays = Object.entries({ delay_seconds, pause }).filter(([, value]) => value !== undefined)
      if (delays.length > 0) {
        throw invalidParameters(
          delays.map(([parameter, value]) => ({ parameter, given: `"${value}"`, allowed: 'left out with reject' })),
        )
      }
      return settle('moved to a dead-letter queue', receipt, () => broker.queues.nack(receipt, { reject }))
    }
    const delayMs = delay_seconds === undefined ? retryAfterMs(exchange.request) : delay_seconds * 1000
    if (pause !== undefined) await pauseQueue(broker, pause, delayMs)
    return settle('rejected', receipt, () => broker.queues.nack(receipt, { delayMs }))
  },
})

/** The form of a date in headers, such as `Sun, 06 Nov 1994 08:49:37 GMT`. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * Returns the delay that the header `Retry-After` asks for, in ms; `undefined` without the header.
 * @throws CeError PARAMETER_INVALID
 */
function retryAfterMs({ headers }: HttpRequest): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  let ms = Number.NaN
  if (/^\d{1,10}$/.test(text)) ms = Number(text) * 1000
  else if (HTTP_DATE.test(text)) ms = Math.max(0, Date.parse(text) - Date.now())
  if (ms <= MAX_LEASE_SECONDS * 1000) return ms
  const allowed = `seconds from 0 to ${MAX_LEASE_SECONDS}, or an HTTP date at most that far ahead`
  throw new CeError('PARAMETER_INVALID', `invalid header Retry-After: ${shownText(text)}; allowed is ${allowed}`, {
    problems: [{ parameter: 'Retry-After', given: shownText(text), allowed }],
  })
}

/** Pauses a queue before messages return to it, so that no other receiver gets them. @throws CeError, BrokerError */
async function pauseQueue({ queues }: BrokerHandle, queue: string, delayMs: number | undefined): Promise<void> {
  if (delayMs === undefined || delayMs === 0 || delayMs > MAX_PAUSE_MS) {
    const allowed = `left out, or with a delay of 1 to ${MAX_PAUSE_MS / 1000} seconds`
    throw invalidParameters([{ parameter: 'pause', given: shownText(queue), allowed }])
  }
  await queues.pause(queue, delayMs)
}

export const queueExtend = defineCeRoute({
  name: 'queue/extend',
  output: ANSWERS.settled,
  method: 'POST',
  summary: 'Sets the end of leases, for work that takes longer. Call it before the leases end.',
  body: 'ignored',
  input: Type.Object(
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
        : `${text}; the other receipts are unknown, settled in another way, of another client, or their lease has ended`,
    data: JSON.stringify({ settled, lost }),
  }
}

export const queueAckAll = defineCeRoute({
  name: 'queue/ack_all',
  output: ANSWERS.drained,
  method: 'POST',
  summary: 'Purges a queue: removes every message that is not leased, including delayed ones.',
  body: 'ignored',
  input: Type.Object({ channel: channel('The queue.') }, STRICT),
  async run({ channel }, { broker }) {
    const count = await broker.queues.purge(channel)
    return {
      status: 200,
      message: `${count} ${count === 1 ? 'message' : 'messages'} removed`,
      data: JSON.stringify({ count }),
    }
  },
})
