import { Buffer } from 'node:buffer'

import type { Tags } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { argument, shownValue } from '@signalbox/http-kit/internal'
import type { ArgumentProblem } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { StoredMessage } from './stored-messages.ts'

/** The tag of a message that an operator sent again: the id of the message that it repeats. */
export const RESENT_FROM = 'resent_from'

/** The arguments that replace a part of a message. */
export const editArguments = {
  body: Type.Optional(argument.text('The new payload. Without it the payload stays.')),
  body_encoding: Type.Optional(
    Type.Literal('base64', { description: 'Present if body is base64, for a payload that is not text.' }),
  ),
  metadata: Type.Optional(argument.text('The new metadata. Without it the metadata stays.')),
  tags: Type.Optional(
    Type.Unsafe<Tags>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'All tags of the new message. Without it the tags stay, except those of a dead letter.',
    }),
  ),
}

export interface MessageEdit {
  readonly body?: string
  readonly body_encoding?: 'base64'
  readonly metadata?: string
  readonly tags?: Tags
}

/** Canonical base64, so that a typing error is not dropped in silence. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A rule for {@link editArguments}. */
export function editProblem({ body, body_encoding: encoding, tags }: MessageEdit): ArgumentProblem | undefined {
  if (encoding !== undefined && (body === undefined || !BASE64.test(body))) {
    return { argument: 'body', ...(body === undefined ? {} : { given: shownValue(body) }), allowed: 'valid base64' }
  }
  if (Object.entries(tags ?? {}).some(([key, value]) => !key.isWellFormed() || !value.isWellFormed())) {
    return { argument: 'tags', given: 'half a surrogate pair', allowed: 'pairs of strings in valid Unicode' }
  }
  return undefined
}

/** Returns the message that repeats another one, with a reference to it. */
export function editedMessage(original: StoredMessage, edit: MessageEdit) {
  return {
    body: edit.body === undefined ? original.body : bytesOf(edit.body, edit.body_encoding),
    metadata: edit.metadata ?? original.metadata,
    tags: { ...(edit.tags ?? withoutOrigin(original.tags)), [RESENT_FROM]: original.id },
    // The tag message_id of the original would make the new message a repeat, which is not stored.
    deduplicationKey: null,
  }
}

function bytesOf(body: string, encoding: 'base64' | undefined): Uint8Array {
  return encoding === undefined ? encodeText(body) : Buffer.from(body, 'base64')
}

/** Returns the tags of a message, without those of a dead letter's origin. */
function withoutOrigin(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([key]) => !key.startsWith('dlq_')))
}
