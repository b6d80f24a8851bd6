import type { Reply, RequestType, Tags } from '@signalbox/broker-core'
import { argument, bodyText, encodedBody, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { bodyEncoding, tagsData } from '../messages/shown-message.ts'
import { defineAction, defineManagementRoute, ofType, STRICT } from '../operation.ts'
import type { ActionCall, Operation } from '../operation.ts'
import { MAX_ENDED, MAX_OPEN } from './open-requests.ts'
import type { SeenRequest } from './open-requests.ts'

const REQUEST_TYPES = ['commands', 'queries'] as const

const STATES = ['waiting', 'delivered', 'ended'] as const

const at = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const requestSchema = Type.Object({
  id: Type.String(),
  type: Type.Unsafe<(typeof REQUEST_TYPES)[number]>({ type: 'string', enum: [...REQUEST_TYPES] }),
  channel: Type.String(),
  client: Type.String({ description: 'The ClientID of the requester.' }),
  body_size: Type.Integer({ minimum: 0 }),
  state: Type.Unsafe<(typeof STATES)[number]>({
    type: 'string',
    enum: [...STATES],
    description: '`delivered` after the first delivery to a responder of this node.',
  }),
  sent_at: Type.String({ description: 'ISO 8601.' }),
  delivered_at: at('The first delivery on this node, ISO 8601; null without one.'),
  responder: Type.Union([Type.String(), Type.Null()], { description: 'The ClientID of the responder that got it.' }),
  ended_at: at('ISO 8601; null while it waits.'),
  outcome: Type.Union([Type.String(), Type.Null()], {
    description: '`executed`, `rejected`, or the code of the error; null while it waits.',
  }),
  milliseconds: Type.Integer({ minimum: 0, description: 'The time since it was sent, or until its end.' }),
})

function shownRequest({ id, type, channel, client, bodySize, sentAt, delivered, ended }: SeenRequest) {
  return {
    id,
    type,
    channel,
    client,
    body_size: bodySize,
    state: ended ? ('ended' as const) : delivered ? ('delivered' as const) : ('waiting' as const),
    sent_at: isoTime(sentAt),
    delivered_at: delivered === undefined ? null : isoTime(delivered.at),
    responder: delivered?.responder ?? null,
    ended_at: ended === undefined ? null : isoTime(ended.at),
    outcome: ended?.outcome ?? null,
    milliseconds: Math.max(0, (ended?.at ?? Date.now()) - sentAt),
  }
}

const requestsRoute = defineManagementRoute({
  name: '/api/requests',
  summary: `The commands and queries that were sent on this node and wait for an answer, oldest first, of up to ${MAX_OPEN}; and the last ${MAX_ENDED} that ended.`,
  input: Type.Object(
    {
      channel: Type.Optional(
        Type.String({ description: 'Only requests on this channel.', minLength: 1, maxLength: 512 }),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most waiting requests to show.', minimum: 1, maximum: 1000, default: 100 }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    node: Type.String({ description: 'The node that answers.' }),
    waiting_count: Type.Integer({ minimum: 0, description: 'The number of waiting requests.' }),
    unlisted: Type.Integer({ minimum: 0, description: 'Requests since the start that were too many to be listed.' }),
    waiting: Type.Array(requestSchema),
    ended: Type.Array(requestSchema, { description: 'Newest first.' }),
  }),
  async run({ channel, limit = 100 }, { environment }) {
    const { requests } = environment
    const isMeant = (request: SeenRequest): boolean => channel === undefined || request.channel === channel
    const waiting = requests.waiting().filter(isMeant)
    const { node } = await environment.node()
    return {
      node,
      waiting_count: waiting.length,
      unlisted: requests.unlisted,
      waiting: waiting.slice(0, limit).map(shownRequest),
      ended: requests.ended().filter(isMeant).map(shownRequest),
    }
  },
})

const sendCommand = defineAction({
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
  output: Type.Object({
    channel: Type.String(),
    executed: Type.Boolean({ description: 'Always true: the responder has executed the command.' }),
  }),
  target: ofType('commands'),
  async run({ timeout_seconds = 10, ...args }, call) {
    await request('commands', args, timeout_seconds, call)
    return { channel: args.channel, executed: true }
  },
})

const sendQuery = defineAction({
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
  output: Type.Object({
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
  args: RequestArguments,
  timeoutSeconds: number,
  { broker, maxWaitMs }: ActionCall,
): Promise<Reply> {
  const timeoutMs = Math.min(timeoutSeconds * 1000, maxWaitMs)
  const { channel, metadata = '', tags = {} } = args
  const bytes = await encodedBody(args, broker.caller)
  const reply = await broker[type].send(channel, { body: bytes, metadata, tags }, { timeoutMs })
  if (reply.executed) return reply
  throw new ManagementError('REQUEST_REJECTED', `the subscriber rejected it: ${reply.error}`, { reason: reply.error })
}

export const requestOperations: readonly Operation[] = [requestsRoute, sendCommand, sendQuery]
