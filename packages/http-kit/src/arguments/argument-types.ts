import { CHANNEL_TYPES, channelNameProblem, isReservedChannel, MAX_CHANNEL_BYTES } from '@signalbox/broker-core'
import type { ChannelType, Tags } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { parseTimestamp, timestampRefusal } from '../timestamp.ts'

/**
 * The kinds of argument that MCP tools and management actions share. Each is a JSON Schema, so that one value gives the
 * type, the check and what `tools/list` and the OpenAPI document show. A refinement adds what JSON Schema cannot say; its message says what is allowed, and why the
 * value is not.
 */

/** The longest delay or expiry that still makes a date when added to now. */
const MAX_SECONDS = 1_000_000_000_000

const WELL_FORMED = 'valid Unicode (it holds half a surrogate pair)'

/** Text that survives as UTF-8: a lone surrogate would come back as another character, so it is refused. */
export function text(description: string, options: { default?: string; minLength?: number } = {}) {
  return Type.Refine(
    Type.String({ description, ...options }),
    (value) => value.isWellFormed(),
    () => WELL_FORMED,
  )
}

/** The name of a channel (C1). A reserved name passes here, whatever follows its prefix: M8 answers it. */
export function channel(description: string) {
  return Type.Refine(
    Type.String({
      description: `${description} 1–${MAX_CHANNEL_BYTES} bytes, usually dot-separated words such as "orders.eu"; no wildcards.`,
    }),
    isChannel,
    notChannel,
  )
}

/** As {@link channel}, or empty for none. */
export function optionalChannel(description: string) {
  return Type.Optional(
    Type.Refine(Type.String({ description, default: '' }), (name) => name === '' || isChannel(name), notChannel),
  )
}

function isChannel(name: string): boolean {
  return isReservedChannel(name) || channelNameProblem(name) === undefined
}

function notChannel(name: string): string {
  return `a channel name of 1 to ${MAX_CHANNEL_BYTES} bytes without control characters, blanks at its ends, empty parts or wildcards (${channelNameProblem(name)})`
}

export function metadata() {
  return Type.Optional(text('Free text that travels beside the body, such as its content type.', { default: '' }))
}

/** Spelled out, because `patternProperties` lets keys with a line break pass unchecked, and many clients do not know it. */
export function tags(more = '') {
  return Type.Optional(
    Type.Refine(
      Type.Unsafe<Tags>({
        type: 'object',
        additionalProperties: { type: 'string' },
        default: {},
        description: `Key-value pairs of strings that travel with the message, such as {"priority": "high"}.${more}`,
      }),
      (pairs: Tags) => Object.keys(pairs).every((key) => key.isWellFormed() && pairs[key]?.isWellFormed() !== false),
      () => WELL_FORMED,
    ),
  )
}

/** For the two stored patterns, whose sends may be repeated (C5). */
export const DEDUPLICATION_HINT =
  ' With a tag "message_id" the call is safe to repeat: the same id from the same client on the same channel within two minutes is stored once.'

/** Required everywhere, also where the specification shows a default (M7), so the schema shows none. */
export function maxMessages(description: string) {
  return Type.Integer({ description, minimum: 1, maximum: 100 })
}

export function seconds(description: string) {
  return Type.Optional(Type.Integer({ description, minimum: 0, maximum: MAX_SECONDS, default: 0 }))
}

export function timeoutSeconds(what: string, standard: number) {
  return Type.Optional(
    Type.Integer({
      description: `How long to wait for ${what}, in seconds, 1 to 3600.`,
      minimum: 1,
      maximum: 3600,
      default: standard,
    }),
  )
}

export function channelType(description: string) {
  return Type.Unsafe<ChannelType>({ type: 'string', enum: [...CHANNEL_TYPES], description })
}

/** Without the format `date-time`: that of JSON Schema demands seconds and a colon in the offset. */
export function timestamp(description: string) {
  return Type.Refine(Type.String({ description }), (value) => parseTimestamp(value) !== undefined, timestampRefusal)
}
