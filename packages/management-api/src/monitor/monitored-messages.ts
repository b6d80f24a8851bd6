import { Buffer } from 'node:buffer'

import { CHANNEL_TYPES, subscriptionPatternProblem } from '@signalbox/broker-core'
import type { ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import { channelMatcher } from '@signalbox/broker-core/internal'
import { argument, bodyText } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { firstBytes } from '../messages/stored-messages.ts'

const DIRECTIONS = ['in', 'out'] as const

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

/**
 * Messages and gaps that are shown together. Each message is serialized once for all monitors with
 * the same `max_body_size`.
 */
export class Batch {
  readonly #items: readonly (Sighting | Gap)[]
  readonly #frames = new Map<number, Map<Sighting, Buffer>>()

  constructor(items: readonly (Sighting | Gap)[]) {
    this.#items = items
  }

  get items(): readonly (Sighting | Gap)[] {
    return this.#items
  }

  /** The bytes of the bodies. */
  get bytes(): number {
    return this.#items.reduce((sum, item) => sum + (item instanceof Gap ? 0 : item.message.body.byteLength), 0)
  }

  frame(sighting: Sighting, maxBodySize: number): Buffer {
    let bySize = this.#frames.get(maxBodySize)
    if (bySize === undefined) this.#frames.set(maxBodySize, (bySize = new Map()))
    let frame = bySize.get(sighting)
    if (frame === undefined) bySize.set(sighting, (frame = messageFrame(sighting, maxBodySize)))
    return frame
  }
}

/**
 * The most pairs of direction and channel that are counted separately; the others are counted for
 * every monitor. The limit bounds memory.
 */
const MAX_SEPARATE = 1_000

interface Missed {
  readonly direction: Direction
  readonly type: ChannelType
  readonly channel: string
  count: number
}

/** A place in the sequence of messages where some were not shown, because the server was too busy. */
export class Gap {
  readonly #missed = new Map<string, Missed>()
  #others = 0

  add(direction: Direction, type: ChannelType, channel: string): void {
    const key = `${direction} ${type} ${channel}`
    const known = this.#missed.get(key)
    if (known !== undefined) known.count++
    else if (this.#missed.size < MAX_SEPARATE) this.#missed.set(key, { direction, type, channel, count: 1 })
    else this.#others++
  }

  /** Returns the number of messages that a monitor with this filter missed. */
  countFor({ matches }: MonitorFilter): number {
    let count = this.#others
    for (const missed of this.#missed.values()) {
      if (matches(missed.direction, missed.type, missed.channel)) count += missed.count
    }
    return count
  }
}

/** A message that monitors may show. */
export interface Sighting {
  readonly direction: Direction
  readonly type: ChannelType
  readonly channel: string
  /** The sender, or the receiver of a delivery. */
  readonly client: string
  readonly message: OutgoingMessage
  /** In ms since the epoch. */
  readonly time: number
}

/** Longer metadata and further tags are left out, as with bodies. */
const MAX_METADATA = 1_024
const MAX_TAGS = 64

/** Returns the frame that shows a message, as JSON text. */
function messageFrame({ direction, type, channel, client, message, time }: Sighting, maxBodySize: number): Buffer {
  const { id, body, metadata, tags } = message
  return json({
    kind: 'message',
    time: new Date(time).toISOString(),
    direction,
    type,
    channel,
    client,
    id,
    metadata: metadata.slice(0, MAX_METADATA).toWellFormed(),
    tags: Object.fromEntries(
      Object.entries(tags)
        .slice(0, MAX_TAGS)
        .map(([key, value]) => [key.slice(0, MAX_METADATA), value.slice(0, MAX_METADATA).toWellFormed()]),
    ),
    ...bodyText(firstBytes(body, maxBodySize)),
    body_size: body.byteLength,
    truncated: body.byteLength > maxBodySize,
  })
}

/**
 * Returns the frame for messages that were not shown, because the reader or the server was too
 * slow; `total` counts all so far.
 */
export function droppedFrame(count: number, total: number): Buffer {
  return json({ kind: 'dropped', count, total })
}

export function stateFrame(kind: 'started' | 'stopped'): Buffer {
  return json({ kind })
}

export function errorFrame(message: string): Buffer {
  return json({ kind: 'error', message })
}

export function endFrame(reason: string): Buffer {
  return json({ kind: 'end', reason })
}

function json(frame: object): Buffer {
  return Buffer.from(JSON.stringify(frame))
}
