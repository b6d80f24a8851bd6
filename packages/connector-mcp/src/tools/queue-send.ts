import { encodeText, isReservedChannel } from '@signalbox/broker-core'
import { argument, shownValue } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ADDS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { confirmation } from './results.ts'

export const queueSend = defineTool({
  name: 'queue_send',
  title: 'Send a message to a queue',
  description:
    'Stores a message durably in a queue, where exactly one consumer will receive it, now or later. The queue is created if it does not exist. ' +
    'Use it to delegate work. To notify every current subscriber, use events_publish; to keep a history that can be read again, events_store_publish; ' +
    'to wait for the outcome, command_send or query_send. Returns a confirmation after the message is stored.',
  input: Type.Object(
    {
      channel: argument.channel('The queue to send to.'),
      body: argument.text('The message itself: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
      delay_seconds: argument.seconds('Time until consumers can receive the message, in seconds; 0 means at once.'),
      expiration_seconds: argument.seconds(
        'Time after which an unreceived message is dropped, in seconds; 0 means never.',
      ),
      max_receive_count: Type.Optional(
        Type.Integer({
          description:
            'Number of receives without acknowledgment after which the message moves to dead_letter_queue; 0 means unlimited. Requires dead_letter_queue.',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
      ),
      dead_letter_queue: argument.optionalChannel(
        'Another queue, to which the message moves after max_receive_count receives; empty means none. Requires max_receive_count.',
      ),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String({ description: 'The queue.' }),
    id: Type.String({ description: 'The id of the stored message.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The sequence number of the message in the queue.' }),
    duplicate: Type.Boolean({
      description: 'True if a message with this message_id was stored before, and this one was not.',
    }),
    warning: Type.Optional(Type.String({ description: 'Present if an argument had no effect.' })),
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['queues'] },
  rule: ({ channel, dead_letter_queue }) =>
    channel === dead_letter_queue && !isReservedChannel(channel)
      ? { argument: 'dead_letter_queue', given: shownValue(channel), allowed: 'another queue than channel' }
      : undefined,
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {}, delay_seconds = 0, expiration_seconds = 0 } = args
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
    if (warning === undefined) return confirmation(done, { channel, id, sequence, duplicate })
    return confirmation(`${done} ${warning}`, { channel, id, sequence, duplicate, warning })
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
