import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { READS } from './annotations.ts'
import { AnswerLimit, messagesOutcome } from './answer-size.ts'
import { emptyNote } from './broker-failures.ts'
import { defineTool } from './define-tool.ts'
import { messagesOutput } from './results.ts'

export const queuePeek = defineTool({
  name: 'queue_peek',
  title: 'Look at a queue',
  description:
    'Returns the messages that queue_receive would return next, without removing them or waiting. Omits delayed messages.',
  input: Type.Object(
    {
      channel: argument.channel('The queue.'),
      max_messages: argument.maxMessages('The most messages to show.'),
    },
    { additionalProperties: false },
  ),
  output: messagesOutput,
  annotations: READS,
  needs: { action: 'peek', patterns: ['queues'] },
  async run({ channel, max_messages }, { broker, maxAnswerBytes }) {
    const limit = new AnswerLimit(maxAnswerBytes)
    const messages = await broker.queues.peek(channel, { maxMessages: max_messages, ...limit.bound })
    const rest = limit.rest(messages.length, max_messages, 'Receive these with queue_receive to see the next ones.')
    const note = messages.length > 0 ? rest : await emptyNote(broker, 'queues', channel)
    return messagesOutcome(
      'messages',
      messages.map((message) => ({ message })),
      () => ({}),
      note,
    )
  },
})
