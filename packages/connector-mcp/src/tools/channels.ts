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

/** Size of one page, in bytes. A longer list continues on the next page. */
const MAX_LIST_BYTES = 4 * 1024 * 1024

export const channelList = defineTool({
  name: 'channel_list',
  title: 'List channels',
  description:
    'Lists the channels, ordered by type and name. Use it to find out where to send or read. A channel appears after its first use; the same name may exist with several types. ' +
    'Returns a JSON array of {name, type, is_active}; an empty array if no channel matches. For the counts of one channel, use channel_info. ' +
    'With limit, or if the list is larger than 4 MiB, the result is one page: pass next_cursor of the structured content as cursor to get the next one.',
  input: Type.Object(
    {
      type: Type.Optional(argument.channelType('The type of the channels; all types if omitted.')),
      pattern: Type.Optional(
        argument.text(
          'The names to list: with * (any characters) or ? (one character) a pattern for the whole name, otherwise a prefix.',
        ),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most channels of one page; all if omitted.', minimum: 1, maximum: 10_000 }),
      ),
      cursor: Type.Optional(
        argument.text('The start of the page: next_cursor of the previous page. Omit it for the first page.'),
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
    'Shows if a channel is active, and how many messages it has accepted and delivered. Returns an error if no channel has this name and type; channel_list shows the existing ones. ' +
    'Returns a JSON object {name, type, is_active, incoming, outgoing}. The structured content also has waiting, delayed, in_flight and dead_lettered for a queue, and first_sequence and last_sequence for an events store.',
  input: Type.Object(
    { channel: argument.channel('The channel.'), type: argument.channelType('The type of the channel.') },
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
