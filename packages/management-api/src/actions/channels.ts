import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineAction, ofType, STRICT } from './action.ts'

const channelArguments = {
  channel: argument.channel('The channel.'),
  type: argument.channelType('Its type; each type is a name space of its own.'),
}

export const createChannel = defineAction({
  name: 'create_channel',
  summary: 'Creates a channel. Channels also come into being when they are first used.',
  input: Type.Object(channelArguments, STRICT),
  data: Type.Object({
    channel: Type.String(),
    type: argument.channelType('Its type.'),
    created: Type.Boolean({ description: 'False when it was there already.' }),
  }),
  target: ({ channel, type }) => ({ channel, type }),
  run: async ({ channel, type }, { broker }) => ({
    channel,
    type,
    created: await broker.channels.create(type, channel),
  }),
  detail: ({ created }) => (created ? 'created' : 'was there already'),
})

export const deleteChannel = defineAction({
  name: 'delete_channel',
  summary: 'Deletes a channel with all that it holds.',
  input: Type.Object(channelArguments, STRICT),
  data: Type.Object({ channel: Type.String(), type: argument.channelType('Its type.') }),
  target: ({ channel, type }) => ({ channel, type }),
  async run({ channel, type }, { broker }) {
    if (!(await broker.channels.delete(type, channel))) throw broker.channels.notFound(type, channel)
    return { channel, type }
  },
})

export const purgeQueue = defineAction({
  name: 'purge_queue',
  summary: 'Removes every message of a queue, delayed ones included; those on lease stay.',
  input: Type.Object({ channel: argument.channel('The queue.') }, STRICT),
  data: Type.Object({
    channel: Type.String(),
    purged: Type.Integer({ minimum: 0, description: 'How many messages were removed.' }),
  }),
  target: ofType('queues'),
  async run({ channel }, { broker }) {
    // Nothing to remove and no such queue look the same to the engine, and a mistyped name must not look like success.
    await broker.channels.info('queues', channel)
    return { channel, purged: await broker.queues.purge(channel) }
  },
  detail: ({ purged }) => `${purged} messages removed`,
})
