import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerHandle, ChannelInfo, ChannelType } from '@signalbox/broker-core'
import { channelListMatcher, inTurns } from '@signalbox/broker-core/internal'
import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { defineManagementRoute, STRICT } from '../operation.ts'
import type { ManagementRouteCall, Operation } from '../operation.ts'
import { invalidCursor, pageLimit, pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { Page } from '../paging.ts'
import { flowFields, flowShape, OBSERVER } from './statistics.ts'
import type { ClientFlow, Statistics } from './statistics.ts'

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

export const queueItem = Type.Object({
  ...channelFields,
  waiting: count('Messages that can be received now.'),
  delayed: count('Messages that become visible later.'),
  in_flight: count('Leased messages.'),
  bytes: count('Bytes of all messages in the queue.'),
  dead_lettered: count('Messages that moved from this queue to a dead-letter queue.'),
  expired: count('Messages that expired in this queue.'),
})

const eventsStoreItem = Type.Object({
  ...channelFields,
  first_sequence: count('The sequence of the first event; 0 if the store is empty.'),
  last_sequence: count('The sequence of the last event; 0 if the store is empty.'),
  entries: count('Stored events.'),
  bytes: count('Bytes of all stored events.'),
})

const clientItem = Type.Object({
  client_id: Type.String(),
  ...flowFields,
  last_activity: lastActivity,
})

const pattern = (what: string) =>
  Type.Optional(
    Type.String({
      description: `Only matching ${what}: a glob if it contains \`*\` or \`?\`, otherwise a prefix.`,
      maxLength: 512,
    }),
  )

const channelParameters = { channel: pattern('channels'), ...pagingParameters }

const channelQuery = Type.Object(channelParameters, STRICT)

const channelStatisticsRoute = defineManagementRoute({
  name: '/v1/stats/channels',
  summary: 'Messages and bytes of each channel, as channel_info counts them; errors since the start of this node.',
  input: Type.Object(
    { ...channelParameters, type: Type.Optional(argument.channelType('Only channels of this type.')) },
    STRICT,
  ),
  output: pageSchema(channelItem),
  run: (query, call) => channelPage(query, query.type, call, channelStatistics),
})

const queueStatisticsRoute = defineManagementRoute({
  name: '/v1/stats/queues',
  summary: 'The same for queues, with their messages waiting, delayed and in flight.',
  input: channelQuery,
  output: pageSchema(queueItem),
  run: (query, call) => channelPage(query, 'queues', call, queueStatistics),
})

const eventsStoreStatisticsRoute = defineManagementRoute({
  name: '/v1/stats/events_stores',
  summary: 'The same for events stores, with their sequences and entries.',
  input: channelQuery,
  output: pageSchema(eventsStoreItem),
  run: (query, call) => channelPage(query, 'events_store', call, eventsStoreStatistics),
})

const clientStatisticsRoute = defineManagementRoute({
  name: '/v1/stats/clients',
  summary: 'Messages and bytes that each client sent to and got from this node since its start.',
  input: Type.Object({ client: pattern('clients'), ...pagingParameters }, STRICT),
  output: Type.Object({
    ...pageSchema(clientItem).properties,
    forgotten: Type.Integer({
      minimum: 0,
      description: 'Clients that were removed from the list because there were too many.',
    }),
  }),
  run(query, { environment: { statistics } }) {
    const fits = channelListMatcher(query.client ?? '')
    const clients = statistics.clients().filter(([clientId]) => fits(clientId))
    const page = pageOf(clients, ([clientId]) => clientId, query)
    const items = page.items.map(([clientId, flow]) => clientStatistics(clientId, flow))
    return { ...page, items, forgotten: statistics.forgottenClients }
  },
})

export const statisticsOperations: readonly Operation[] = [
  channelStatisticsRoute,
  queueStatisticsRoute,
  eventsStoreStatisticsRoute,
  clientStatisticsRoute,
]

export function observerHandle({ services }: ManagementRouteCall): BrokerHandle {
  return services.broker.as(OBSERVER)
}

/** Returns a page of channels. Details are read only for the channels of the page. */
async function channelPage<Item>(
  { channel, limit, cursor }: Static<typeof channelQuery>,
  type: ChannelType | undefined,
  call: ManagementRouteCall,
  itemOf: (info: ChannelInfo, statistics: ManagementRouteCall['environment']['statistics']) => Item,
): Promise<Page<Item>> {
  const page = await observerHandle(call)
    .channels.page({
      limit: pageLimit({ limit }),
      cursor,
      type,
      pattern: channel,
    })
    .catch((error: unknown) => {
      throw isBrokerError(error, 'ARGUMENT_INVALID') ? invalidCursor() : error
    })
  const items: Item[] = []
  await inTurns(page.channels, (info) => items.push(itemOf(info, call.environment.statistics)))
  return {
    items,
    next_cursor: page.nextCursor ?? null,
    total: page.total,
  }
}

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

function eventsStoreStatistics(info: ChannelInfo, statistics: Statistics): Static<typeof eventsStoreItem> {
  const { firstSequence = 0, lastSequence = 0, entries = 0, bytes = 0 } = info.eventsStore ?? {}
  return {
    ...channelStatistics(info, statistics),
    first_sequence: firstSequence,
    last_sequence: lastSequence,
    entries,
    bytes,
  }
}

function clientStatistics(clientId: string, flow: Readonly<ClientFlow>): Static<typeof clientItem> {
  return { client_id: clientId, ...flowShape(flow), last_activity: isoTime(flow.lastActivity) }
}
