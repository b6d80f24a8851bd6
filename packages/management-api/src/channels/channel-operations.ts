import type { ChannelInfo } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { messageCount } from '../messages/shown-message.ts'
import { defineAction, defineManagementRoute, ofType, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { pageLimit, pageSchema, pagingParameters } from '../paging.ts'
import { channelItem, channelStatistics, observerHandle } from '../statistics/statistics-operations.ts'
import type { Statistics } from '../statistics/statistics.ts'
import type { AttachedClient } from './attachments.ts'
import { pausedUntilOrNull } from './pause-operations.ts'
import { CHANNEL_SORTS, depthOf, searchChannels } from './search-channels.ts'
import type { ChannelSort } from './search-channels.ts'

const countOrNull = (description: string) => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description })

const listedChannel = Type.Object({
  ...channelItem.properties,
  depth: countOrNull('Waiting messages of a queue, or entries of an events store; null for other types.'),
  delayed: countOrNull('Messages of a queue that become visible later; null for other types.'),
  in_flight: countOrNull('Leased messages of a queue; null for other types.'),
  dead_lettered: countOrNull('Messages that moved from the queue to a dead-letter queue; null for other types.'),
  bytes: countOrNull('Bytes of the stored messages; null for types that are not stored.'),
  paused_until: pausedUntilOrNull,
})

const channelsRoute = defineManagementRoute({
  name: '/api/channels',
  summary: 'Searches and sorts the channels of all types.',
  input: Type.Object(
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
  output: Type.Object({
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
    paused_until: info.pausedUntil === undefined ? null : isoTime(info.pausedUntil),
  }
}

/** The most entries in an answer. */
const MAX_CLIENTS = 1_000

const subscribersRoute = defineManagementRoute({
  name: '/api/subscribers',
  summary: 'The subscribers, responders and waiting receivers of a channel on this node, by ClientID.',
  input: Type.Object(
    {
      type: argument.channelType('The type of the channel.'),
      channel: Type.String({ description: 'The name of the channel.', minLength: 1, maxLength: 512 }),
    },
    STRICT,
  ),
  output: Type.Object({
    node: Type.String({ description: 'The node whose clients these are.' }),
    items: Type.Array(
      Type.Object({
        client_id: Type.String(),
        kind: Type.Unsafe<AttachedClient['kind']>({
          type: 'string',
          enum: ['subscriber', 'responder', 'receiver'],
          description: 'receiver: a receive that waits for a message of the queue.',
        }),
        pattern: Type.Union([Type.String(), Type.Null()], {
          description: 'The pattern of the subscription; null if it names the channel.',
        }),
        group: Type.Union([Type.String(), Type.Null()], { description: 'The consumer group.' }),
        count: Type.Integer({ minimum: 1, description: 'The number of subscriptions or waiting receives.' }),
      }),
      { description: `By ClientID, at most ${MAX_CLIENTS}.` },
    ),
    total: Type.Integer({ minimum: 0, description: 'The number of entries, including those that are left out.' }),
  }),
  async run({ type, channel }, { environment }) {
    const { node } = await environment.node()
    const clients = environment.attachments.of({ type, name: channel })
    return {
      node,
      items: clients.slice(0, MAX_CLIENTS).map(({ clientId, kind, pattern = null, group = null, count }) => ({
        client_id: clientId,
        kind,
        pattern,
        group,
        count,
      })),
      total: clients.length,
    }
  },
})

const channelArguments = {
  channel: argument.channel(`The channel. ${argument.CHANNEL_RULES}`),
  type: argument.channelType('The type of the channel. Each type has its own names.'),
}

const createChannel = defineAction({
  name: 'create_channel',
  summary: 'Creates a channel. The first use of a channel creates it as well.',
  input: Type.Object(channelArguments, STRICT),
  output: Type.Object({
    channel: Type.String(),
    type: argument.channelType('The type of the channel.'),
    created: Type.Boolean({ description: 'False if the channel existed already.' }),
  }),
  target: ({ channel, type }) => ({ channel, type }),
  run: async ({ channel, type }, { broker }) => ({
    channel,
    type,
    created: await broker.channels.create(type, channel),
  }),
  detail: ({ created }) => (created ? 'created' : 'existed already'),
})

const dryRun = Type.Optional(
  Type.Boolean({ description: 'True counts the messages and changes nothing.', default: false }),
)

const isDryRun = Type.Optional(Type.Literal(true, { description: 'Present after a dry run: nothing was changed.' }))

const deleteChannel = defineAction({
  name: 'delete_channel',
  summary: 'Deletes a channel with its messages. A dry run counts them.',
  input: Type.Object({ ...channelArguments, dry_run: dryRun }, STRICT),
  output: Type.Object({
    channel: Type.String(),
    type: argument.channelType('The type of the channel.'),
    dry_run: isDryRun,
    would_delete: Type.Optional(
      Type.Object(
        {
          messages: Type.Integer({ minimum: 0, description: 'All messages, including delayed and leased ones.' }),
          bytes: Type.Integer({ minimum: 0 }),
          in_flight: Type.Integer({ minimum: 0, description: 'The leased messages among them.' }),
          subscribers: Type.Integer({ minimum: 0, description: 'Subscribers and waiting receivers at the moment.' }),
        },
        { description: 'Present after a dry run.' },
      ),
    ),
  }),
  target: ({ channel, type }) => ({ channel, type }),
  async run({ channel, type, dry_run = false }, { broker }) {
    if (dry_run) return { channel, type, dry_run, would_delete: contentOf(await broker.channels.info(type, channel)) }
    if (!(await broker.channels.delete(type, channel))) throw await broker.channels.notFound(type, channel)
    return { channel, type }
  },
  detail: ({ would_delete: counts }) =>
    counts === undefined ? undefined : `dry run: ${messageCount(counts.messages)} would be deleted`,
})

function contentOf({ queue, eventsStore, subscribers }: ChannelInfo) {
  const { waiting = 0, delayed = 0, inFlight = 0 } = queue ?? {}
  return {
    messages: eventsStore?.entries ?? waiting + delayed + inFlight,
    bytes: eventsStore?.bytes ?? queue?.bytes ?? 0,
    in_flight: inFlight,
    subscribers,
  }
}

const purgeQueue = defineAction({
  name: 'purge_queue',
  summary: 'Removes every message of a queue, including delayed ones, except leased messages. A dry run counts them.',
  input: Type.Object({ channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`), dry_run: dryRun }, STRICT),
  output: Type.Object({
    channel: Type.String(),
    purged: Type.Integer({ minimum: 0, description: 'The number of messages removed.' }),
    dry_run: isDryRun,
    would_purge: Type.Optional(
      Type.Integer({ minimum: 0, description: 'After a dry run: the number of messages that a purge removes now.' }),
    ),
    in_flight: Type.Optional(
      Type.Integer({ minimum: 0, description: 'After a dry run: the leased messages, which stay.' }),
    ),
  }),
  target: ofType('queues'),
  async run({ channel, dry_run = false }, { broker }) {
    // The engine purges an unknown queue without an error, so a mistyped name would look like
    // success.
    const { queue } = await broker.channels.info('queues', channel)
    if (!dry_run) return { channel, purged: await broker.queues.purge(channel) }
    const { waiting = 0, delayed = 0, inFlight = 0 } = queue ?? {}
    return { channel, purged: 0, dry_run, would_purge: waiting + delayed, in_flight: inFlight }
  },
  detail: ({ purged, would_purge: counted }) =>
    counted === undefined ? `${messageCount(purged)} removed` : `dry run: ${messageCount(counted)} would be removed`,
})

export const channelOperations: readonly Operation[] = [
  channelsRoute,
  subscribersRoute,
  createChannel,
  deleteChannel,
  purgeQueue,
]
