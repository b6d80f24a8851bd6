import type { QueueDelivery, SettleResult } from '@signalbox/broker-core'
import { isReservedChannel } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { ArgumentProblem } from '@signalbox/http-kit/internal'
import {
  ANSWER_LEASE_MS,
  argument,
  encodedBody,
  leaseForAnswer,
  settlementOf,
  shownValue,
} from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { AnswerLimit, messagesOutcome } from './answer-size.ts'
import { emptyNote } from './broker-failures.ts'
import { ADDS, CHANGES, defineTool, READS, REMOVES, withProgress } from './define-tool.ts'
import { bodiesInText, confirmation, messageFields, moreOutput, notedConfirmation, noteOutput } from './results.ts'
import type { Tool, ToolContext, ToolNeed, ToolOutcome } from './tool.ts'

/** The longest lease, in seconds: twelve hours. */
const MAX_LEASE_SECONDS = 43_200

export const queueSend = defineTool({
  name: 'queue_send',
  title: 'Send to a queue',
  summary:
    'Stores a message until one consumer receives it. To notify all current subscribers, use events_publish; ' +
    'for a history that can be read again, events_store_publish; to wait for the outcome, command_send or query_send.',
  input: Type.Object(
    {
      channel: argument.channel('The queue; created if it does not exist.'),
      body: argument.text('Text, or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
      delay_seconds: argument.seconds('Seconds until the message can be received.'),
      expiration_seconds: argument.seconds('Seconds until an unreceived message is dropped; 0 is never.'),
      max_receive_count: Type.Optional(
        Type.Integer({
          description: 'Receives without acknowledgment before the message moves to dead_letter_queue (required too).',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
      ),
      dead_letter_queue: argument.optionalChannel('Another queue, for messages that fail max_receive_count times.'),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String(),
    sequence: Type.Integer(),
    duplicate: Type.Boolean(),
    warning: Type.Optional(Type.String()),
    note: noteOutput,
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['queues'] },
  rule: ({ channel, dead_letter_queue }) =>
    channel === dead_letter_queue && !isReservedChannel(channel)
      ? { argument: 'dead_letter_queue', given: shownValue(channel), allowed: 'another queue than channel' }
      : undefined,
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {}, delay_seconds = 0, expiration_seconds = 0 } = args
    const isNew = broker.channels.isMissing('queues', channel)
    const body = encodedBody(args, broker.caller)
    const { id, sequence, duplicate } = await broker.queues.send(channel, {
      // A short body is here at once: waiting for it would cost every send.
      body: body instanceof Promise ? await body : body,
      metadata,
      tags,
      delayMs: delay_seconds * 1000,
      expirationMs: expiration_seconds * 1000,
      maxReceiveCount: args.max_receive_count ?? 0,
      deadLetterQueue: args.dead_letter_queue ?? '',
    })
    const queue = JSON.stringify(channel)
    const done = duplicate
      ? `Queue ${queue} already has a message with this message_id; no message was added.`
      : `Message sent to queue ${queue}${delay_seconds > 0 ? `; it becomes visible in ${delay_seconds} s` : ''}.`
    const warning = deadLetterWarning(args)
    const hint = isNew
      ? `Queue ${queue} did not exist; this call created it. channel_list shows the others.`
      : undefined
    if (warning === undefined) return notedConfirmation(done, { channel, id, sequence, duplicate }, hint)
    return notedConfirmation(`${done} ${warning}`, { channel, id, sequence, duplicate, warning }, hint)
  },
})

/** Returns a warning if one dead-lettering argument has no effect because the other one is missing. */
function deadLetterWarning(args: { max_receive_count?: number; dead_letter_queue?: string }): string | undefined {
  const { max_receive_count = 0, dead_letter_queue = '' } = args
  if (max_receive_count > 0 === (dead_letter_queue !== '')) return undefined
  const [given, missing] =
    max_receive_count > 0
      ? ['max_receive_count', 'dead_letter_queue']
      : ['dead_letter_queue', 'max_receive_count of at least 1']
  return `${given} has no effect without ${missing}: this message is never dead-lettered.`
}

const messagesOutput = Type.Object({
  messages: Type.Array(Type.Partial(Type.Object(messageFields))),
  bodies: bodiesInText,
  more: moreOutput,
  note: noteOutput,
})

/** Messages that may be leased. */
const leasedMessagesOutput = Type.Object({
  messages: Type.Array(
    Type.Partial(Type.Object({ ...messageFields, receipt: Type.String(), receive_count: Type.Integer() })),
  ),
  bodies: bodiesInText,
  more: moreOutput,
  note: noteOutput,
})

const receiveArguments = {
  channel: argument.channel('The queue.'),
  max_messages: argument.maxMessages('The most messages to receive; use 1 unless you can process several.'),
  wait_timeout_seconds: Type.Optional(
    Type.Integer({
      description: 'Seconds to wait for a first message.',
      minimum: 1,
      maximum: 60,
      default: 5,
    }),
  ),
}

interface ReceiveArguments {
  readonly channel: string
  readonly max_messages: number
  readonly wait_timeout_seconds?: number
}

const needs: ToolNeed = { action: 'receive', patterns: ['queues'] }

export const queueReceive = defineTool({
  name: 'queue_receive',
  title: 'Receive from a queue',
  summary:
    'Receives messages from a queue, oldest first, and removes them permanently. To look without removing, use queue_peek. ' +
    'Returns a JSON array of {body, metadata, tags} as soon as there is a message, or [] after wait_timeout_seconds.',
  input: Type.Object(receiveArguments, { additionalProperties: false }),
  output: messagesOutput,
  annotations: REMOVES,
  needs,
  ownTimeout: true,
  onDisconnect: 'cancel',
  run: receiveAndRemove,
})

/** `queue_receive` for a server with leases. */
export const queueLease = defineTool({
  name: 'queue_receive',
  title: 'Receive from a queue',
  summary:
    'Receives messages from a queue, oldest first. Removes them permanently, or with lease_seconds hides them for that time: then call queue_ack when the work is done, or they are delivered again. ' +
    'To look without removing, use queue_peek. Returns a JSON array of {body, metadata, tags, receipt, receive_count} as soon as there is a message, or [] after wait_timeout_seconds.',
  input: Type.Object(
    {
      ...receiveArguments,
      lease_seconds: Type.Optional(
        Type.Integer({
          description: 'Seconds for the work on these messages; 0 removes them at once.',
          minimum: 0,
          maximum: MAX_LEASE_SECONDS,
          default: 0,
        }),
      ),
    },
    { additionalProperties: false },
  ),
  output: leasedMessagesOutput,
  annotations: REMOVES,
  needs,
  ownTimeout: true,
  onDisconnect: 'cancel',
  run: ({ lease_seconds = 0, ...args }, context) =>
    lease_seconds === 0 ? receiveAndRemove(args, context) : receive(args, lease_seconds * 1000, context, true),
})

function leaseMembers({ message, receipt }: QueueDelivery): object {
  return { receipt, receive_count: message.receiveCount }
}

function receiveAndRemove(args: ReceiveArguments, context: ToolContext): Promise<ToolOutcome> {
  return receive(args, ANSWER_LEASE_MS, context, false)
}

/**
 * Receives messages; none if the call was ended.
 * @param isLease `true` gives the client the receipts, `false` removes the messages after the answer
 */
async function receive(
  args: ReceiveArguments,
  leaseMs: number,
  context: ToolContext,
  isLease: boolean,
): Promise<ToolOutcome> {
  const limit = new AnswerLimit(context)
  const deliveries = await lease(args, leaseMs, context, limit)
  const remedy = 'The others are still in the queue; call queue_receive again to get them.'
  const rest = limit.rest(deliveries.length, args.max_messages, remedy)
  const note = deliveries.length > 0 ? rest : await emptyNote(context.broker, 'queues', args.channel)
  const outcome = messagesOutcome('messages', deliveries, isLease ? leaseMembers : () => ({}), note)
  const settlement = settlementOf(context.broker.queues, deliveries)
  if (settlement === undefined) return outcome
  // A client that did not get the receipts cannot settle them. Otherwise the messages wait for the client.
  return { ...outcome, settlement: isLease ? { ...settlement, commit: async () => {} } : settlement }
}

function lease(
  { channel, max_messages, wait_timeout_seconds = 5 }: ReceiveArguments,
  leaseMs: number,
  context: ToolContext,
  limit: AnswerLimit,
): Promise<readonly QueueDelivery[]> {
  return withProgress(context, `a message in queue ${JSON.stringify(channel)}`, async () => {
    const { broker, signal } = context
    if (signal.aborted) return []
    const input = {
      ...(await limit.bound()),
      maxMessages: max_messages,
      waitMs: wait_timeout_seconds * 1000,
      leaseMs,
      signal,
    }
    try {
      return await leaseForAnswer(broker.queues, channel, input)
    } catch (error) {
      if (signal.aborted && error === signal.reason) return []
      throw error
    }
  })
}

/** The most receipts of one call, as many as one receive returns. */
const MAX_RECEIPTS = 100

const STRICT = { additionalProperties: false } as const

const receipts = Type.Array(Type.String(), { description: 'Receipts from queue_receive, 1 to 100.' })

const settleOutput = Type.Object({ settled: Type.Integer(), lost: Type.Array(Type.String()) })

const queueAck = defineTool({
  name: 'queue_ack',
  title: 'Acknowledge messages',
  summary:
    'Removes messages that queue_receive leased with lease_seconds. Call it when the work is done: after the lease another consumer receives the message.',
  input: Type.Object({ receipts }, STRICT),
  output: settleOutput,
  annotations: { ...REMOVES, idempotentHint: true },
  needs,
  rule: tooMany,
  run: async ({ receipts }, { broker }) => settled('acknowledged and removed', await broker.queues.ack(receipts)),
})

const queueNack = defineTool({
  name: 'queue_nack',
  title: 'Reject messages',
  summary:
    'Returns leased messages to their queue, for work that failed. After max_receive_count receives, or with reject, a message moves to its dead-letter queue instead.',
  input: Type.Object(
    {
      receipts,
      delay_seconds: Type.Optional(
        Type.Integer({
          description:
            'Seconds until the messages can be received again. Without it, the delay of the queue, usually none.',
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
    },
    STRICT,
  ),
  output: settleOutput,
  annotations: CHANGES,
  needs,
  rule: (input) => tooMany(input) ?? delayOfRejected(input),
  async run({ receipts, delay_seconds, reject = false }, { broker: { queues } }) {
    if (reject) return settled('moved to a dead-letter queue', await queues.nack(receipts, { reject }))
    const delayMs = delay_seconds === undefined ? undefined : delay_seconds * 1000
    const result = await queues.nack(receipts, { delayMs })
    const rejected = `rejected; they can be received again in ${delay_seconds} s`
    return settled(delayMs === undefined || delayMs === 0 ? 'returned to the queue' : rejected, result)
  },
})

const queueExtend = defineTool({
  name: 'queue_extend',
  title: 'Extend leases',
  summary:
    'Sets the end of leases to lease_seconds from now, for work that takes longer. Call it before the leases end.',
  input: Type.Object(
    {
      receipts,
      lease_seconds: Type.Integer({
        description: 'The new lease, in seconds.',
        minimum: 1,
        maximum: MAX_LEASE_SECONDS,
      }),
    },
    STRICT,
  ),
  output: settleOutput,
  annotations: CHANGES,
  needs,
  rule: tooMany,
  run: async ({ receipts, lease_seconds }, { broker }) =>
    settled(`leased for ${lease_seconds} s from now`, await broker.queues.extend(receipts, lease_seconds * 1000)),
})

/** The tools that settle messages which `queue_receive` leased. */
export const SETTLE_TOOLS: readonly Tool[] = [queueAck, queueNack, queueExtend]

function tooMany({ receipts }: { readonly receipts: readonly string[] }): ArgumentProblem | undefined {
  if (receipts.length > 0 && receipts.length <= MAX_RECEIPTS) return undefined
  return { argument: 'receipts', given: shownValue(receipts), allowed: `an array of 1 to ${MAX_RECEIPTS} receipts` }
}

function delayOfRejected({
  delay_seconds,
  reject = false,
}: {
  readonly delay_seconds?: number
  readonly reject?: boolean
}): ArgumentProblem | undefined {
  if (!reject || delay_seconds === undefined) return undefined
  return { argument: 'delay_seconds', given: shownValue(delay_seconds), allowed: 'left out with reject' }
}

/** Returns the outcome of a settlement. A lost receipt is no error, as on the other surfaces. */
function settled(done: string, { settled, lost }: SettleResult): ToolOutcome {
  const text = `${settled} of ${settled + lost.length} messages ${done}.`
  if (lost.length === 0) return confirmation(text, { settled, lost })
  const receipts = lost.map((receipt) => shownText(receipt, 128)).join(', ')
  return confirmation(
    `${text} Lost receipts: ${receipts}. Each is unknown or was settled in another way, or its lease has ended, or another client has it. ` +
      'Do not repeat the call for them: their messages may be with other consumers.',
    { settled, lost },
  )
}

export const queuePeek = defineTool({
  name: 'queue_peek',
  title: 'Look at a queue',
  summary:
    'Returns the messages that queue_receive would return next, without removing them or waiting. Omits delayed messages.',
  input: Type.Object(
    {
      channel: argument.channel('The queue.'),
      max_messages: argument.maxMessages('The most messages to show.'),
    },
    { additionalProperties: false },
  ),
  output: messagesOutput,
  annotations: READS,
  needs: { action: 'peek', patterns: ['queues'] },
  async run({ channel, max_messages }, context) {
    const { broker } = context
    const limit = new AnswerLimit(context)
    const messages = await broker.queues.peek(channel, { maxMessages: max_messages, ...(await limit.bound()) })
    const rest = limit.rest(messages.length, max_messages, 'Receive these with queue_receive to see the next ones.')
    const note = messages.length > 0 ? rest : await emptyNote(broker, 'queues', channel)
    return messagesOutcome(
      'messages',
      messages.map((message) => ({ message })),
      () => ({}),
      note,
    )
  },
})
