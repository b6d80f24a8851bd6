import {
  CHANNEL_TYPES,
  channelNameProblem,
  isReservedChannel,
  MAX_CHANNEL_BYTES,
  MAX_TAGS,
} from '@signalbox/broker-core'
import type { ChannelType, Tags } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { parseTimestamp, timestampRefusal } from './message-shape.ts'

/**
 * The argument types that MCP tools and management actions share. Each is a JSON Schema, so that one value gives the
 * TypeScript type, the check, and the schema in `tools/list` and in the OpenAPI document. A refinement adds rules
 * that JSON Schema cannot express; its message names the allowed values and the problem.
 */

/** The longest delay or expiry, in seconds. Added to the current time, it still makes a valid date. */
const MAX_SECONDS = 1_000_000_000_000

const WELL_FORMED = 'valid Unicode (it contains half a surrogate pair)'

/** Text that UTF-8 can represent. A lone surrogate would be stored as another character, so it is rejected. */
export function text(description: string, options: { default?: string; minLength?: number } = {}) {
  return Type.Refine(
    Type.String({ description, ...options }),
    (value) => value.isWellFormed(),
    () => WELL_FORMED,
  )
}

/** The rules for channel names, for descriptions. */
export const CHANNEL_RULES = `1–${MAX_CHANNEL_BYTES} bytes, usually dot-separated words such as "orders.eu"; no wildcards.`

/** A channel name. Reserved names pass here in any form, because the Broker rejects them (CHANNEL_RESERVED). */
export function channel(description: string) {
  return Type.Refine(Type.String({ description }), isChannel, notChannel)
}

/** A channel name as in {@link channel}, or empty for none. */
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

/** The argument `metadata` of a message. */
export function metadata() {
  return Type.Optional(text('Free text.', { default: '' }))
}

/**
 * Written out, because `patternProperties` skips keys that contain a line break, and many clients do not support it.
 */
export function tags(more = '') {
  return Type.Optional(
    Type.Refine(
      Type.Unsafe<Tags>({
        type: 'object',
        additionalProperties: { type: 'string' },
        maxProperties: MAX_TAGS,
        default: {},
        description: `Pairs of strings.${more}`,
      }),
      (pairs: Tags) => Object.keys(pairs).every((key) => key.isWellFormed() && pairs[key]?.isWellFormed() !== false),
      () => WELL_FORMED,
    ),
  )
}

/** A hint for queues and events stores, whose sends can be repeated safely. */
export const DEDUPLICATION_HINT = ' With the key "message_id", a repeated call within two minutes stores nothing.'

/**
 * A required argument. The specification shows a default for some tools, but requires the argument everywhere, so the
 * schema has no default.
 */
export function maxMessages(description: string) {
  return Type.Integer({ description, minimum: 1, maximum: 100 })
}

/** An optional number of seconds, 0 by default. */
export function seconds(description: string) {
  return Type.Optional(Type.Integer({ description, minimum: 0, maximum: MAX_SECONDS, default: 0 }))
}

/** An optional timeout, 1 to 3600 seconds. */
export function timeoutSeconds(what: string, standard: number) {
  return Type.Optional(
    Type.Integer({
      description: `Seconds to wait for ${what}.`,
      minimum: 1,
      maximum: 3600,
      default: standard,
    }),
  )
}

/** The type of a channel. */
export function channelType(description: string) {
  return Type.Unsafe<ChannelType>({ type: 'string', enum: [...CHANNEL_TYPES], description })
}

/** A timestamp. The schema does not set the format `date-time`, which requires seconds and a colon in the offset. */
export function timestamp(description: string) {
  return Type.Refine(Type.String({ description }), (value) => parseTimestamp(value) !== undefined, timestampRefusal)
}
