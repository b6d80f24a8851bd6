import type { QueueDelivery } from '@signalbox/broker-core'
import { ANSWER_LEASE_MS, argument, leaseForAnswer, messageShape, settlementOf } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { REMOVES } from './annotations.ts'
import { MAX_ANSWER_BYTES } from './answer-size.ts'
import { defineTool } from './define-tool.ts'
import { messagesOutcome, messagesOutput } from './results.ts'
import type { ToolContext } from './tool.ts'
import { withProgress } from './waiting.ts'

export const queueReceive = defineTool({
  name: 'queue_receive',
  title: 'Receive from a queue',
  description:
    'Receives messages from a queue, oldest first, and removes them permanently. To look without removing, use queue_peek. ' +
    'Returns a JSON array of {body, metadata, tags} as soon as there is a message, or [] after wait_timeout_seconds.',
  input: Type.Object(
    {
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
    },
    { additionalProperties: false },
  ),
  output: messagesOutput,
  annotations: REMOVES,
  needs: { action: 'receive', patterns: ['queues'] },
  ownTimeout: true,
  onDisconnect: 'cancel',
  async run({ channel, max_messages, wait_timeout_seconds = 5 }, context) {
    const deliveries = await withProgress(context, `a message in queue ${JSON.stringify(channel)}`, () =>
      receive(channel, max_messages, wait_timeout_seconds, context),
    )
    const outcome = messagesOutcome(
      'messages',
      deliveries.map(({ message }) => messageShape(message)),
    )
    const settlement = settlementOf(context.broker.queues, deliveries)
    return settlement === undefined ? outcome : { ...outcome, settlement }
  },
})

/** Receives messages; none if the call was ended. */
async function receive(
  channel: string,
  maxMessages: number,
  waitSeconds: number,
  { broker, signal }: ToolContext,
): Promise<readonly QueueDelivery[]> {
  if (signal.aborted) return []
  const input = {
    maxMessages,
    maxBytes: MAX_ANSWER_BYTES,
    waitMs: waitSeconds * 1000,
    leaseMs: ANSWER_LEASE_MS,
    signal,
  }
  try {
    return await leaseForAnswer(broker.queues, channel, input)
  } catch (error) {
    if (signal.aborted && error === signal.reason) return []
    throw error
  }
}
