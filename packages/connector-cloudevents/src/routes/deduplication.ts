import { createHash } from 'node:crypto'

import type { MessageInput } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { invalidParameters } from '../errors.ts'
import type { AddressedEvent } from './addressed-event.ts'

/** The parameters that decide how a repeated send is recognized. */
export const DEDUPLICATION = {
  message_id: Type.Optional(
    Type.String({
      description:
        'The id by which a repeated send is recognized, in place of the `source` and `id` of the event; for a single event.',
      minLength: 1,
      maxLength: 256,
    }),
  ),
  deduplicate: Type.Optional(
    Type.Boolean({
      description: '`false` stores the event even if one with the same `source` and `id` was stored before.',
      default: true,
    }),
  ),
}

/** The longest `source` and `id` that are kept as they are, in characters. */
const MAX_KEY_CHARACTERS = 256

/**
 * Returns the events with the ids by which the engine recognizes repeats: two events with the same `source` and
 * `id` are the same event (CloudEvents 3.1).
 */
export function deduplicated(
  addressed: readonly AddressedEvent[],
  { message_id, deduplicate = true }: { readonly message_id?: string; readonly deduplicate?: boolean },
): readonly AddressedEvent[] {
  if (message_id !== undefined) {
    if (addressed.length > 1) {
      const allowed = 'left out for a batch: the events have a source and an id'
      throw invalidParameters([{ parameter: 'message_id', given: JSON.stringify(message_id), allowed }])
    }
    return addressed.map(({ channel, message }) => {
      const tags = { ...message.tags, message_id }
      return { channel, message: { body: message.body, tags } }
    })
  }
  return deduplicate ? addressed.map(({ channel, message }) => ({ channel, message: keyed(message) })) : addressed
}

function keyed({ body, tags = {} }: MessageInput): MessageInput {
  const { ce_source: source = '', ce_id: id = '' } = tags
  const key = `${source.length} ${source} ${id}`
  const short = key.length <= MAX_KEY_CHARACTERS ? key : createHash('sha256').update(key).digest('base64')
  return { body, tags, deduplicationKey: short }
}
