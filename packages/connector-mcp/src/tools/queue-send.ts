import { encodeText, isReservedChannel } from '@signalbox/broker-core'
import { argument, shownValue } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ADDS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { notedConfirmation, noteOutput } from './results.ts'

export const queueSend = defineTool({
  name: 'queue_send',
  title: 'Send to a queue',
  description:
    'Stores a message until one consumer receives it. To notify all current subscribers, use events_publish; ' +
    'for a history that can be read again, events_store_publish; to wait for the outcome, command_send or query_send.',
  input: Type.Object(
    {
      channel: argument.channel('The queue; created if it does not exist.'),
      body: argument.text('Text, or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
      delay_seconds: argument.seconds('Seconds until the message can be received.'),
      expiration_seconds: argument.seconds('Seconds until an unreceived message is dropped; 0 is never.'),
      max_receive_count: Type.Optional(
        Type.Integer({
          description: 'Receives without acknowledgment before the message moves to dead_letter_queue (required too).',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
      ),
      dead_letter_queue: argument.optionalChannel('Another queue, for messages that fail max_receive_count times.'),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String(),
    sequence: Type.Integer(),
    duplicate: Type.Boolean(),
    warning: Type.Optional(Type.String()),
    note: noteOutput,
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['queues'] },
  rule: ({ channel, dead_letter_queue }) =>
    channel === dead_letter_queue && !isReservedChannel(channel)
      ? { argument: 'dead_letter_queue', given: shownValue(channel), allowed: 'another queue than channel' }
      : undefined,
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {}, delay_seconds = 0, expiration_seconds = 0 } = args
    const isNew = broker.channels.isMissing('queues', channel)
    const { id, sequence, duplicate } = await broker.queues.send(channel, {
      body: encodeText(args.body),
      metadata,
      tags,
      delayMs: delay_seconds * 1000,
      expirationMs: expiration_seconds * 1000,
      maxReceiveCount: args.max_receive_count ?? 0,
      deadLetterQueue: args.dead_letter_queue ?? '',
    })
    const queue = JSON.stringify(channel)
    const done = duplicate
      ? `Queue ${queue} already has a message with this message_id; no message was added.`
      : `Message sent to queue ${queue}${delay_seconds > 0 ? `; it becomes visible in ${delay_seconds} s` : ''}.`
    const warning = deadLetterWarning(args)
    const hint = isNew
      ? `Queue ${queue} did not exist; this call created it. channel_list shows the others.`
      : undefined
    if (warning === undefined) return notedConfirmation(done, { channel, id, sequence, duplicate }, hint)
    return notedConfirmation(`${done} ${warning}`, { channel, id, sequence, duplicate, warning }, hint)
  },
})

/** Returns a warning if one dead-lettering argument has no effect because the other one is missing. */
function deadLetterWarning(args: { max_receive_count?: number; dead_letter_queue?: string }): string | undefined {
  const { max_receive_count = 0, dead_letter_queue = '' } = args
  if (max_receive_count > 0 === (dead_letter_queue !== '')) return undefined
  const [given, missing] =
    max_receive_count > 0
      ? ['max_receive_count', 'dead_letter_queue']
      : ['dead_letter_queue', 'max_receive_count of at least 1']
  return `${given} has no effect without ${missing}: this message is never dead-lettered.`
}
