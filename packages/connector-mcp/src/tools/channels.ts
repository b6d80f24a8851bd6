import type { BrokerHandle, ChannelInfo, ChannelType } from '@signalbox/broker-core'
import { CHANNEL_TYPES, isBrokerError } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineTool, READS } from './define-tool.ts'
import { shownSettings, settingsHint } from './channel-settings.ts'
import {
  channelDescriptor,
  channelInfoOutput,
  channelInfoResult,
  channelsOutput,
  listOutcome,
  MAX_LISTED,
  storedCounts,
} from './results.ts'

/** Size of one page, in bytes. A longer list continues on the next page. */
const MAX_LIST_BYTES = 4 * 1024 * 1024

export const channelList = defineTool({
  name: 'channel_list',
  title: 'List channels',
  summary:
    'Lists the channels, by type and name. The same name may exist with several types. ' +
    'Returns a JSON array of {name, type, is_active}; active: used in the last 5 minutes. For counts, use channel_info.',
  input: Type.Object(
    {
      type: Type.Optional(argument.channelType('Only channels of this type.')),
      pattern: Type.Optional(argument.text('Only these names: a pattern with * or ?, otherwise a prefix.')),
      limit: Type.Optional(Type.Integer({ description: 'The page size.', minimum: 1, maximum: 10_000 })),
      cursor: Type.Optional(argument.text('cursor of the previous page.')),
    },
    { additionalProperties: false },
  ),
  output: channelsOutput,
  annotations: READS,
  needs: { action: 'list', patterns: CHANNEL_TYPES },
  async run(args, { broker }) {
    const { channels, nextCursor, left } = await broker.channels.page(
      { limit: MAX_LISTED, ...args, maxBytes: MAX_LIST_BYTES },
      channelDescriptor,
    )
    const later = nextCursor === undefined ? undefined : { cursor: nextCursor, leftOut: left }
    return listOutcome('channels', JSON.stringify(channels), later)
  },
})

export const channelInfo = defineTool({
  name: 'channel_info',
  title: 'Show one channel',
  summary:
    'Returns a JSON object {name, type, is_active, incoming, outgoing} with the counts of accepted and delivered messages. ' +
    'Also returns the state of a queue or an events store, a description and the schema of bodies.',
  input: Type.Object(
    { channel: argument.channel('The channel.'), type: argument.channelType('Its type.') },
    { additionalProperties: false },
  ),
  output: channelInfoOutput,
  annotations: READS,
  needs: { action: 'list', patterns: CHANNEL_TYPES },
  async run({ channel, type }, { broker }) {
    const settings = shownSettings(broker.channels.settings(type, channel))
    const { exists, ...info } = await infoOf(broker, type, channel, settings !== undefined)
    const result = channelInfoResult(info)
    const counts = storedCounts(info)
    const shown = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
    const hints = [
      ...(exists ? [] : ['The channel does not exist yet. The first message creates it.']),
      ...(shown.length === 0 ? [] : [`Also: ${shown.join(', ')}.`]),
      ...(settings === undefined ? [] : settingsHint(settings)),
    ]
    return {
      text: JSON.stringify(result),
      hint: hints.length === 0 ? undefined : hints.join('\n'),
      isError: false,
      structuredContent: { ...result, ...counts, ...settings },
    }
  },
})

const NOTHING_YET = { incoming: 0, incomingBytes: 0, outgoing: 0, outgoingBytes: 0, subscribers: 0, lastActivity: 0 }

/**
 * Returns the state of a channel. One that does not exist has a state if it has settings: an error for
 * a wrong body advises to call this tool.
 */
async function infoOf(
  { channels }: BrokerHandle,
  type: ChannelType,
  name: string,
  hasSettings: boolean,
): Promise<ChannelInfo & { readonly exists: boolean }> {
  try {
    return { ...(await channels.info(type, name)), exists: true }
  } catch (error) {
    if (!hasSettings || !isBrokerError(error, 'CHANNEL_NOT_FOUND')) throw error
    return { name, type, isActive: false, ...NOTHING_YET, exists: false }
  }
}
