import { isBrokerError } from '@signalbox/broker-core'
import { channelListMatcher } from '@signalbox/broker-core/internal'
import type { BrokerHandle, ChannelInfo, ChannelType } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { invalidCursor, pageLimit, pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { Page } from '../paging.ts'
import { OBSERVER } from '../statistics/observer.ts'
import type { ManagementRouteCall } from './route.ts'
import { defineManagementRoute, STRICT } from './route.ts'
import {
  channelItem,
  channelStatistics,
  clientItem,
  clientStatistics,
  eventsStoreItem,
  eventsStoreStatistics,
  queueItem,
  queueStatistics,
} from './statistics-items.ts'

const pattern = (what: string) =>
  Type.Optional(
    Type.String({
      description: `Only matching ${what}: a glob if it contains \`*\` or \`?\`, otherwise a prefix.`,
      maxLength: 512,
    }),
  )

const channelParameters = { channel: pattern('channels'), ...pagingParameters }

const channelQuery = Type.Object(channelParameters, STRICT)

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
      limit: pageLimit(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
      ...(type === undefined ? {} : { type }),
      ...(channel === undefined ? {} : { pattern: channel }),
    })
    .catch((error: unknown) => {
      throw isBrokerError(error, 'ARGUMENT_INVALID') ? invalidCursor() : error
    })
  return {
    items: page.channels.map((info) => itemOf(info, call.environment.statistics)),
    next_cursor: page.nextCursor ?? null,
    total: page.total,
  }
}

export const channelStatisticsRoute = defineManagementRoute({
  path: '/v1/stats/channels',
  summary: 'Messages and bytes of each channel, as channel_info counts them; errors since the start of this node.',
  query: Type.Object(
    { ...channelParameters, type: Type.Optional(argument.channelType('Only channels of this type.')) },
    STRICT,
  ),
  data: pageSchema(channelItem),
  run: (query, call) => channelPage(query, query.type, call, channelStatistics),
})

export const queueStatisticsRoute = defineManagementRoute({
  path: '/v1/stats/queues',
  summary: 'The same for queues, with their messages waiting, delayed and in flight.',
  query: channelQuery,
  data: pageSchema(queueItem),
  run: (query, call) => channelPage(query, 'queues', call, queueStatistics),
})

export const eventsStoreStatisticsRoute = defineManagementRoute({
  path: '/v1/stats/events_stores',
  summary: 'The same for events stores, with their sequences and entries.',
  query: channelQuery,
  data: pageSchema(eventsStoreItem),
  run: (query, call) => channelPage(query, 'events_store', call, eventsStoreStatistics),
})

export const clientStatisticsRoute = defineManagementRoute({
  path: '/v1/stats/clients',
  summary: 'Messages and bytes that each client sent to and got from this node since its start.',
  query: Type.Object({ client: pattern('clients'), ...pagingParameters }, STRICT),
  data: Type.Object({
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
