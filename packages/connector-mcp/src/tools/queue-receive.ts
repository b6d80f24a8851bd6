import type { QueueDelivery } from '@signalbox/broker-core'
import { ANSWER_LEASE_MS, argument, leaseForAnswer, settlementOf } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { REMOVES } from './annotations.ts'
import { AnswerLimit, messagesOutcome } from './answer-size.ts'
import { emptyNote } from './broker-failures.ts'
import { defineTool } from './define-tool.ts'
import { MAX_LEASE_SECONDS } from './queue-settle.ts'
import { leasedMessagesOutput, messagesOutput } from './results.ts'
import type { ToolContext, ToolNeed, ToolOutcome } from './tool.ts'
import { withProgress } from './waiting.ts'

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
  description:
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
  description:
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
  async run({ lease_seconds = 0, ...args }, context) {
    if (lease_seconds === 0) return receiveAndRemove(args, context)
    const [deliveries, outcome] = await receive(args, lease_seconds * 1000, context, leaseMembers)
    const settlement = settlementOf(context.broker.queues, deliveries)
    // A client that did not get the receipts cannot settle them. Otherwise the messages wait for the client.
    return settlement === undefined ? outcome : { ...outcome, settlement: { ...settlement, commit: async () => {} } }
  },
})

function leaseMembers({ message, receipt }: QueueDelivery): object {
  return { receipt, receive_count: message.receiveCount }
}

async function receiveAndRemove(args: ReceiveArguments, context: ToolContext): Promise<ToolOutcome> {
  const [deliveries, outcome] = await receive(args, ANSWER_LEASE_MS, context, () => ({}))
  const settlement = settlementOf(context.broker.queues, deliveries)
  return settlement === undefined ? outcome : { ...outcome, settlement }
}

/**
 * Receives messages; none if the call was ended.
 * @param others Returns the further members of a message in the result
 */
async function receive(
  args: ReceiveArguments,
  leaseMs: number,
  context: ToolContext,
  others: (delivery: QueueDelivery) => object,
): Promise<readonly [deliveries: readonly QueueDelivery[], outcome: ToolOutcome]> {
  const limit = new AnswerLimit(context.maxAnswerBytes)
  const deliveries = await lease(args, leaseMs, context, limit)
  const remedy = 'The others are still in the queue; call queue_receive again to get them.'
  const rest = limit.rest(deliveries.length, args.max_messages, remedy)
  const note = deliveries.length > 0 ? rest : await emptyNote(context.broker, 'queues', args.channel)
  return [deliveries, messagesOutcome('messages', deliveries, others, note)]
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
      ...limit.bound,
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
