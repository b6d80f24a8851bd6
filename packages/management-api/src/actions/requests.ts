import type { Reply, RequestType, Tags } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { argument, bodyText } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import type { ActionCall } from './action.ts'
import { defineAction, ofType, STRICT } from './action.ts'
import { bodyEncoding, tagsData } from './message-data.ts'

export const sendCommand = defineAction({
  name: 'send_command',
  summary: 'Sends a command and waits until a responder has executed it, as command_send does.',
  input: Type.Object(
    {
      channel: argument.channel(`The commands channel. ${argument.CHANNEL_RULES}`),
      body: argument.text('The payload of the command: plain text or JSON as text.'),
      timeout_seconds: argument.timeoutSeconds('the acknowledgement', 10),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    executed: Type.Boolean({ description: 'Always true: the responder has executed the command.' }),
  }),
  target: ofType('commands'),
  async run({ timeout_seconds = 10, ...args }, call) {
    await request('commands', args, timeout_seconds, call)
    return { channel: args.channel, executed: true }
  },
})

export const sendQuery = defineAction({
  name: 'send_query',
  summary: 'Sends a query and returns the reply of a responder, as query_send does.',
  input: Type.Object(
    {
      channel: argument.channel(`The queries channel. ${argument.CHANNEL_RULES}`),
      body: argument.text('The payload of the query: plain text or JSON as text.'),
      timeout_seconds: argument.timeoutSeconds('the reply', 30),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    body: Type.String({ description: 'The payload of the reply.' }),
    body_encoding: bodyEncoding,
    metadata: Type.String(),
    tags: tagsData,
  }),
  target: ofType('queries'),
  async run({ timeout_seconds = 30, ...args }, call) {
    const { body, metadata, tags } = await request('queries', args, timeout_seconds, call)
    return { channel: args.channel, ...bodyText(body), metadata, tags }
  },
})

interface RequestArguments {
  readonly channel: string
  readonly body: string
  readonly metadata?: string
  readonly tags?: Tags
}

/**
 * Sends a command or a query and waits for the reply.
 * @throws ManagementError REQUEST_REJECTED; BrokerError NO_SUBSCRIBER, REQUEST_TIMEOUT
 */
async function request(
  type: RequestType,
  { channel, body, metadata = '', tags = {} }: RequestArguments,
  timeoutSeconds: number,
  { broker, maxWaitMs }: ActionCall,
): Promise<Reply> {
  const timeoutMs = Math.min(timeoutSeconds * 1000, maxWaitMs)
  const reply = await broker[type].send(channel, { body: encodeText(body), metadata, tags }, { timeoutMs })
  if (reply.executed) return reply
  throw new ManagementError('REQUEST_REJECTED', `the subscriber rejected it: ${reply.error}`, { reason: reply.error })
}
