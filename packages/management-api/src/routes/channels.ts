import type { ChannelInfo } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import type { ChannelSort } from '../channels/channel-order.ts'
import { CHANNEL_SORTS, depthOf } from '../channels/channel-order.ts'
import { searchChannels } from '../channels/search-channels.ts'
import { pageLimit, pageSchema, pagingParameters } from '../paging.ts'
import type { Statistics } from '../statistics/statistics.ts'
import { defineManagementRoute, STRICT } from './route.ts'
import { channelItem, channelStatistics } from './statistics-items.ts'
import { observerHandle } from './statistics.ts'

const countOrNull = (description: string) => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description })

const listedChannel = Type.Object({
  ...channelItem.properties,
  depth: countOrNull('Waiting messages of a queue, or entries of an events store; null for other types.'),
  delayed: countOrNull('Messages of a queue that become visible later; null for other types.'),
  in_flight: countOrNull('Leased messages of a queue; null for other types.'),
  dead_lettered: countOrNull('Messages that moved from the queue to a dead-letter queue; null for other types.'),
  bytes: countOrNull('Bytes of the stored messages; null for types that are not stored.'),
})

export const channelsRoute = defineManagementRoute({
  path: '/api/channels',
  summary: 'Searches and sorts the channels of all types.',
  query: Type.Object(
    {
      type: Type.Optional(argument.channelType('Only channels of this type.')),
      name: Type.Optional(
        Type.String({
          description: 'Only channels with exactly this name: at most one of each type.',
          minLength: 1,
          maxLength: 512,
        }),
      ),
      search: Type.Optional(
        Type.String({
          description:
            'Only channels whose name contains this text, in upper or lower case; a glob over the whole name if it contains `*` or `?`.',
          maxLength: 512,
        }),
      ),
      sort: Type.Optional(
        Type.Unsafe<ChannelSort>({
          type: 'string',
          enum: [...CHANNEL_SORTS],
          default: 'name',
          description: 'The value to sort by. Channels with the same value are sorted by name.',
        }),
      ),
      order: Type.Optional(
        Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
          default: 'asc',
          description: 'asc: the lowest value first. desc: the highest value first.',
        }),
      ),
      ...pagingParameters,
    },
    STRICT,
  ),
  data: Type.Object({
    ...pageSchema(listedChannel).properties,
    as_of: Type.String({
      description:
        'The time of the values, ISO 8601. Lists that are sorted by another value than the name may be some seconds old.',
    }),
    complete: Type.Boolean({
      description: 'False while the engine is still reading the states of the channels: ask again.',
    }),
  }),
  async run({ type, name, search = '', sort = 'name', order = 'asc', ...page }, call) {
    const { statistics, channelIndex } = call.environment
    const wanted = { type, name, search, sort, order, limit: pageLimit(page), cursor: page.cursor }
    const found = await searchChannels(observerHandle(call), channelIndex, wanted)
    return {
      items: found.channels.map((info) => listed(info, statistics)),
      next_cursor: found.nextCursor,
      total: found.total,
      as_of: isoTime(found.asOf),
      complete: found.complete,
    }
  },
})

function listed(info: ChannelInfo, statistics: Statistics): Static<typeof listedChannel> {
  const { queue, eventsStore } = info
  return {
    ...channelStatistics(info, statistics),
    depth: depthOf(info) ?? null,
    delayed: queue?.delayed ?? null,
    in_flight: queue?.inFlight ?? null,
    dead_lettered: queue?.deadLettered ?? null,
    bytes: queue?.bytes ?? eventsStore?.bytes ?? null,
  }
}
