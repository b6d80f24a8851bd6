import type { BrokerHandle, Reply, RequestType } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { argument, bodyText, encodedBody } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { withoutSubscriber } from './broker-failures.ts'
import { ACTS, ASKS, cancelledOutcome, defineTool, withProgress } from './define-tool.ts'
import { confirmation, failure, replyOutcome, replyOutput } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

interface RequestArguments {
  readonly channel: string
  readonly body: string
  readonly metadata?: string
  readonly tags?: Readonly<Record<string, string>>
}

export const commandSend = defineTool({
  name: 'command_send',
  title: 'Send a command',
  summary:
    'Sends a command to a subscriber and waits until it is executed. To get data back, use query_send; for work later, queue_send. ' +
    'Fails if no subscriber answers in time.',
  input: Type.Object(
    {
      channel: argument.channel('The commands channel.'),
      body: argument.text('Text, or JSON as text.'),
      timeout_seconds: argument.timeoutSeconds('the acknowledgement', 10),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String(),
    executed: Type.Boolean(),
  }),
  annotations: ACTS,
  needs: { action: 'send', patterns: ['commands'] },
  ownTimeout: true,
  run: (args, context) => {
    const { channel, timeout_seconds = 10 } = args
    return request('commands', args, timeout_seconds, context, () =>
      confirmation(`Command executed by the subscriber on channel ${JSON.stringify(channel)}.`, {
        channel,
        executed: true,
      }),
    )
  },
})

export const querySend = defineTool({
  name: 'query_send',
  title: 'Send a query',
  summary:
    'Asks a subscriber for data and returns the body of its reply. For an action without a reply, use command_send. ' +
    'Fails if no subscriber answers in time.',
  input: Type.Object(
    {
      channel: argument.channel('The queries channel.'),
      body: argument.text('Text, or JSON as text.'),
      timeout_seconds: argument.timeoutSeconds('the reply', 30),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    { additionalProperties: false },
  ),
  output: replyOutput,
  annotations: ASKS,
  needs: { action: 'send', patterns: ['queries'] },
  ownTimeout: true,
  run: (args, context) =>
    request('queries', args, args.timeout_seconds ?? 30, context, ({ body, metadata, tags }) => {
      const { body: reply, ...encoding } = bodyText(body)
      return replyOutcome(reply, { ...encoding, metadata, tags })
    }),
})

const WHAT: Readonly<Record<RequestType, string>> = { commands: 'command', queries: 'query' }

async function request(
  type: RequestType & keyof BrokerHandle,
  args: RequestArguments,
  timeoutSeconds: number,
  context: ToolContext,
  answered: (reply: Reply) => ToolOutcome,
): Promise<ToolOutcome> {
  const { channel, metadata = '', tags = {} } = args
  const { signal, callerGone } = context
  context.allowTask()
  const reply = context.broker[type].send(
    channel,
    { body: await encodedBody(args, context.broker.caller), metadata, tags },
    { timeoutMs: timeoutSeconds * 1000, signal, callerGone },
  )
  return outcomeOf(reply, type, channel, context, answered)
}

/**
 * Awaits the reply in a separate function without the arguments, so that their body can be freed once a subscriber
 * has it.
 */
async function outcomeOf(
  awaitedReply: Promise<Reply>,
  type: RequestType,
  channel: string,
  context: ToolContext,
  answered: (reply: Reply) => ToolOutcome,
): Promise<ToolOutcome> {
  const where = `${WHAT[type]} on channel ${JSON.stringify(channel)}`
  const awaited = `the answer to the ${where}`
  try {
    const reply = await withProgress(context, awaited, () => awaitedReply)
    return reply.executed ? answered(reply) : failure(`REJECTED: The subscriber rejected the ${where}: ${reply.error}`)
  } catch (error) {
    if (isBrokerError(error, 'NO_SUBSCRIBER')) return withoutSubscriber(error, context.broker, type, channel)
    return cancelledOutcome(error, context, awaited)
  }
}
