import type { BrokerHandle } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { messageNotFound } from '../errors.ts'
import { editArguments, editedMessage, editProblem, RESENT_FROM } from '../messages/edited-message.ts'
import { findMessage } from '../messages/find-messages.ts'
import type { StoredType } from '../messages/stored-messages.ts'
import { storedType } from '../routes/messages.ts'
import { defineAction, STRICT } from './action.ts'

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
