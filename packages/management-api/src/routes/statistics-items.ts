import type { ChannelInfo } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { flowFields, flowShape } from '../statistics/flow.ts'
import type { ClientFlow, Statistics } from '../statistics/statistics.ts'

/** The items of the statistics: their schemas and the functions that create them. */

const count = (description: string) => Type.Integer({ minimum: 0, description })

const lastActivity = Type.Union([Type.String(), Type.Null()], {
  description: 'The last message in or out, ISO 8601; null for never.',
})

const channelFields = {
  name: Type.String(),
  type: argument.channelType('The channel type.'),
  is_active: Type.Boolean({
    description: 'True if the channel had traffic or a subscriber within the last 5 minutes.',
  }),
  subscribers: count('Current subscribers.'),
  ...flowFields,
  bytes_in: count('Bytes accepted: bodies, metadata and tags.'),
  bytes_out: count('Bytes delivered: bodies, metadata and tags.'),
  last_activity: lastActivity,
}

export const channelItem = Type.Object(channelFields)

export function channelStatistics(info: ChannelInfo, statistics: Statistics): Static<typeof channelItem> {
  const { name, type, isActive, subscribers } = info
  return {
    name,
    type,
    is_active: isActive,
    subscribers,
    ...flowShape({
      messagesIn: info.incoming,
      messagesOut: info.outgoing,
      bytesIn: info.incomingBytes,
      bytesOut: info.outgoingBytes,
      errors: statistics.errorsOf(type, name),
    }),
    last_activity: info.lastActivity === 0 ? null : isoTime(info.lastActivity),
  }
}

export const queueItem = Type.Object({
  ...channelFields,
  waiting: count('Messages that can be received now.'),
  delayed: count('Messages that become visible later.'),
  in_flight: count('Leased messages.'),
  bytes: count('Bytes of all messages in the queue.'),
  dead_lettered: count('Messages that moved from this queue to a dead-letter queue.'),
  expired: count('Messages that expired in this queue.'),
})

export function queueStatistics(info: ChannelInfo, statistics: Statistics): Static<typeof queueItem> {
  const { waiting = 0, delayed = 0, inFlight = 0, bytes = 0, deadLettered = 0, expired = 0 } = info.queue ?? {}
  return {
    ...channelStatistics(info, statistics),
    waiting,
    delayed,
    in_flight: inFlight,
    bytes,
    dead_lettered: deadLettered,
    expired,
  }
}

export const eventsStoreItem = Type.Object({
  ...channelFields,
  first_sequence: count('The sequence of the first event; 0 if the store is empty.'),
  last_sequence: count('The sequence of the last event; 0 if the store is empty.'),
  entries: count('Stored events.'),
  bytes: count('Bytes of all stored events.'),
})

export function eventsStoreStatistics(info: ChannelInfo, statistics: Statistics): Static<typeof eventsStoreItem> {
  const { firstSequence = 0, lastSequence = 0, entries = 0, bytes = 0 } = info.eventsStore ?? {}
  return {
    ...channelStatistics(info, statistics),
    first_sequence: firstSequence,
    last_sequence: lastSequence,
    entries,
    bytes,
  }
}

export const clientItem = Type.Object({
  client_id: Type.String(),
  ...flowFields,
  last_activity: lastActivity,
})

export function clientStatistics(clientId: string, flow: Readonly<ClientFlow>): Static<typeof clientItem> {
  return { client_id: clientId, ...flowShape(flow), last_activity: isoTime(flow.lastActivity) }
}
