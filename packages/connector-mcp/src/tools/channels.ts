import { CHANNEL_TYPES } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { READS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import {
  channelDescriptor,
  channelInfoOutput,
  channelInfoResult,
  channelInfoStructure,
  channelsOutput,
  confirmation,
  listOutcome,
} from './results.ts'

/** A longer list is cut, and goes on on the next page. */
const MAX_LIST_BYTES = 4 * 1024 * 1024

export const channelList = defineTool({
  name: 'channel_list',
  title: 'List channels',
  description:
    'Lists the channels there are, by type and by name. Use it to find out where to send or read. A channel appears once it has been used; the same name may exist under several types. ' +
    'Returns a JSON array of {name, type, is_active}; an empty array if nothing matches. For counts of one channel, use channel_info. ' +
    'With limit, and where the list would be larger than 4 MiB, it is a page: next_cursor in the structured content leads to the next one.',
  input: Type.Object(
    {
      type: Type.Optional(argument.channelType('Only channels of this type; all types if left out.')),
      pattern: Type.Optional(
        argument.text(
          'Only names that match: with * (any characters) or ? (one) a pattern for the whole name, otherwise the beginning of the name.',
        ),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most channels of one page; all if left out.', minimum: 1, maximum: 10_000 }),
      ),
      cursor: Type.Optional(
        argument.text('Where the page begins: next_cursor of the page before. The first page needs none.'),
      ),
    },
    { additionalProperties: false },
  ),
  output: channelsOutput,
  annotations: READS,
  needs: { action: 'list', patterns: CHANNEL_TYPES },
  async run(args, { broker }) {
    const { channels, nextCursor } = await broker.channels.page({ ...args, maxBytes: MAX_LIST_BYTES })
    return listOutcome('channels', channels.map(channelDescriptor), nextCursor)
  },
})

export const channelInfo = defineTool({
  name: 'channel_info',
  title: 'Show one channel',
  description:
    'Shows one channel: whether it is active, and how many messages came in and went out so far. An error if no channel of that name and type exists; channel_list shows those that do. ' +
    'Returns a JSON object {name, type, is_active, incoming, outgoing}. The structured content also has waiting, delayed, in_flight and dead_lettered of a queue, and first_sequence and last_sequence of an events store.',
  input: Type.Object(
    { channel: argument.channel('The channel.'), type: argument.channelType('Its type.') },
    { additionalProperties: false },
  ),
  output: channelInfoOutput,
  annotations: READS,
  needs: { action: 'list', patterns: CHANNEL_TYPES },
  async run({ channel, type }, { broker }) {
    const info = await broker.channels.info(type, channel)
    return confirmation(JSON.stringify(channelInfoResult(info)), channelInfoStructure(info))
  },
})
