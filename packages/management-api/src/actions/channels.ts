import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineAction, ofType, STRICT } from './action.ts'

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

export const deleteChannel = defineAction({
  name: 'delete_channel',
  summary: 'Deletes a channel with its messages.',
  input: Type.Object(channelArguments, STRICT),
  data: Type.Object({ channel: Type.String(), type: argument.channelType('The type of the channel.') }),
  target: ({ channel, type }) => ({ channel, type }),
  async run({ channel, type }, { broker }) {
    if (!(await broker.channels.delete(type, channel))) throw broker.channels.notFound(type, channel)
    return { channel, type }
  },
})

export const purgeQueue = defineAction({
  name: 'purge_queue',
  summary: 'Removes every message of a queue, including delayed ones, except leased messages.',
  input: Type.Object({ channel: argument.channel(`The queue. ${argument.CHANNEL_RULES}`) }, STRICT),
  data: Type.Object({
    channel: Type.String(),
    purged: Type.Integer({ minimum: 0, description: 'The number of messages removed.' }),
  }),
  target: ofType('queues'),
  async run({ channel }, { broker }) {
    // The engine purges an unknown queue without an error, so a mistyped name would look like
    // success.
    await broker.channels.info('queues', channel)
    return { channel, purged: await broker.queues.purge(channel) }
  },
  detail: ({ purged }) => `${purged} messages removed`,
})
