import { CHANNEL_TYPES, subscriptionPatternProblem } from '@signalbox/broker-core'
import { channelMatcher } from '@signalbox/broker-core/internal'
import type { ChannelType } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

export const DIRECTIONS = ['in', 'out'] as const

/** `in`: accepted from a producer. `out`: delivered to a receiver, reader or subscriber. */
export type Direction = (typeof DIRECTIONS)[number]

const MAX_BODY_SIZE = 65_536
const DEFAULT_BODY_SIZE = 1_024

/** The query parameters of a monitor. */
export const monitorQuery = Type.Object(
  {
    channel: Type.Optional(
      Type.Refine(
        Type.String({
          description: 'A channel or a pattern: `*` matches one part of a name, a last `>` one or more parts.',
          default: '>',
        }),
        (pattern) => subscriptionPatternProblem(pattern) === undefined,
        (pattern) => `a channel or a pattern of channels (${subscriptionPatternProblem(pattern)})`,
      ),
    ),
    type: Type.Optional(argument.channelType(`Only this channel type: ${CHANNEL_TYPES.join(', ')}.`)),
    direction: Type.Optional(
      Type.Unsafe<Direction>({
        type: 'string',
        enum: [...DIRECTIONS],
        description: 'Only accepted messages (`in`), or only delivered messages (`out`).',
      }),
    ),
    max_body_size: Type.Optional(
      Type.Integer({
        description: 'The most bytes shown of a body; 0 shows none.',
        minimum: 0,
        maximum: MAX_BODY_SIZE,
        default: DEFAULT_BODY_SIZE,
      }),
    ),
  },
  { additionalProperties: false },
)

export interface MonitorFilter {
  readonly maxBodySize: number
  readonly matches: (direction: Direction, type: ChannelType, channel: string) => boolean
}

export function monitorFilter(query: Static<typeof monitorQuery>): MonitorFilter {
  const { channel = '>', type, direction, max_body_size: maxBodySize = DEFAULT_BODY_SIZE } = query
  const named = channel === '>' ? () => true : channelMatcher(channel)
  return {
    maxBodySize,
    matches: (ofDirection, ofType, ofChannel) =>
      (direction === undefined || direction === ofDirection) &&
      (type === undefined || type === ofType) &&
      named(ofChannel),
  }
}
