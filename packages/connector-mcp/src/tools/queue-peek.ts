import { argument, messageShape } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { READS } from './annotations.ts'
import { MAX_ANSWER_BYTES, MAX_ANSWER_TEXT } from './answer-size.ts'
import { defineTool } from './define-tool.ts'
import { messagesOutcome, messagesOutput } from './results.ts'

export const queuePeek = defineTool({
  name: 'queue_peek',
  title: 'Look at the next messages of a queue',
  description:
    'Returns the messages that queue_receive would return next, without removing them. Does not wait, and does not show delayed messages. Returns an empty array if the queue is empty or does not exist. ' +
    `${MAX_ANSWER_TEXT} The result is a JSON array of {body, metadata, tags}.`,
  input: Type.Object(
    {
      channel: argument.channel('The queue to read.'),
      max_messages: argument.maxMessages('The most messages to show, 1 to 100.'),
    },
    { additionalProperties: false },
  ),
  output: messagesOutput,
  annotations: READS,
  needs: { action: 'peek', patterns: ['queues'] },
  async run({ channel, max_messages }, { broker }) {
    const messages = await broker.queues.peek(channel, { maxMessages: max_messages, maxBytes: MAX_ANSWER_BYTES })
    return messagesOutcome('messages', messages.map(messageShape))
  },
})
