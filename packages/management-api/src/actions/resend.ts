import { Buffer } from 'node:buffer'

import type { BrokerHandle, Tags } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { argument, shownValue } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { messageNotFound } from '../errors.ts'
import { withoutOrigin } from '../dead-letters/dead-letter.ts'
import type { StoredMessage } from '../messages/shown-message.ts'
import type { StoredType } from '../messages/stored-messages.ts'
import { findMessage } from '../messages/find-messages.ts'
import { storedType } from '../routes/messages.ts'
import { defineAction, STRICT } from './action.ts'

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
export function editProblem({ body, body_encoding: encoding, tags }: MessageEdit) {
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

async function store(
  broker: BrokerHandle,
  type: StoredType,
  channel: string,
  message: ReturnType<typeof editedMessage>,
) {
  return type === 'queues' ? broker.queues.send(channel, message) : broker.eventsStore.publish(channel, message)
}

export const resendMessage = defineAction({
  name: 'resend_message',
  summary: `Stores a copy of a message of a queue or an events store, as it is or edited, under the operator's name. The copy has the id of the original in the tag ${RESENT_FROM}; the original stays.`,
  input: Type.Object(
    {
      type: storedType('The type of the channel.'),
      channel: argument.channel(`The channel that has the message. ${argument.CHANNEL_RULES}`),
      sequence: Type.Integer({
        description: 'The number of the message in the channel.',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      to: Type.Optional(
        argument.channel('The channel, of the same type, that gets the copy. Without it the same channel.'),
      ),
      ...editArguments,
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String({ description: 'The channel that got the copy.' }),
    type: storedType('The type of the channel.'),
    id: Type.String({ description: 'The id of the copy.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The number of the copy in the channel.' }),
    resent_from: Type.String({ description: 'The id of the original.' }),
  }),
  target: ({ type, channel, to = channel }) => ({ type, channel: to }),
  rule: editProblem,
  async run({ type, channel, sequence: number, to = channel, ...edit }, { broker }) {
    await broker.channels.info(type, channel)
    const original = await findMessage(broker, { type, channel }, { sequence: number })
    if (original === undefined) throw messageNotFound({ type, channel }, { sequence: number })
    const { id, sequence } = await store(broker, type, to, editedMessage(original, edit))
    return { channel: to, type, id, sequence, resent_from: original.id }
  },
  detail: ({ id, resent_from: original }) => `message ${id} repeats message ${original}`,
})
