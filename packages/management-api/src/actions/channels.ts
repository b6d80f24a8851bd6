import type { ChannelInfo } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineAction, ofType, STRICT } from './action.ts'
import { messageCount } from './message-count.ts'

const channelArguments = {
  channel: argument.channel(`The channel. ${argument.CHANNEL_RULES}`),
  type: argument.channelType('The type of the channel. Each type has its own names.'),
}

export const createChannel = defineAction({
  name: 'create_channel',
  summary: 'Creates a channel. The first use of a channel creates it as well.',
  input: Type.Object(channelArguments, STRICT),
  data: Type.Object({
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

export const deleteChannel = defineAction({
  name: 'delete_channel',
  summary: 'Deletes a channel with its messages. A dry run counts them.',
  input: Type.Object({ ...channelArguments, dry_run: dryRun }, STRICT),
  data: Type.Object({
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

export const purgeQueue = defineAction({
  name: 'purge_queue',
  summary: 'Removes every message of a queue, including delayed ones, except leased messages. A dry run counts them.',
  input: Type.Object({ channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`), dry_run: dryRun }, STRICT),
  data: Type.Object({
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
