import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { lastSequence } from '../dead-letters/last-sequence.ts'
import { MAX_REDRIVEN } from '../dead-letters/redrive.ts'
import { MAX_RUNNING, redriveSchema } from '../dead-letters/redrives.ts'
import { defineAction, ofType, STRICT } from './action.ts'
import { messageCount } from './message-count.ts'
import { selectionArguments } from './redrive.ts'

export const startRedrive = defineAction({
  name: 'start_redrive',
  summary: `Starts to redrive every dead letter of a queue, or those of one source and reason, and answers at once; /api/redrives shows the progress. Messages that arrive after the start stay. A node runs up to ${MAX_RUNNING} redrives of up to 100,000 messages each, and ends them at its shutdown.`,
  input: Type.Object(
    { channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`), ...selectionArguments },
    STRICT,
  ),
  data: redriveSchema,
  target: ofType('queues'),
  async run({ channel, ...selection }, { broker, services, operator, redrives, trail }) {
    const { queue } = await broker.channels.info('queues', channel)
    const maxExamined = Math.min(queue?.waiting ?? 0, MAX_REDRIVEN)
    return redrives.start({
      channel,
      selection,
      maxMessages: maxExamined,
      maxExamined,
      lastSequence: await lastSequence(broker, channel, queue?.waiting ?? 0),
      operator,
      queues: broker.queues,
      broker: services.broker,
      trail,
    })
  },
  detail: ({ id, total }) => `redrive ${id} of up to ${total} messages started`,
})

export const cancelRedrive = defineAction({
  name: 'cancel_redrive',
  summary: 'Stops a redrive that this node runs. Messages that were sent back stay in their queues.',
  input: Type.Object(
    { id: Type.String({ description: 'The id of the redrive.', minLength: 1, maxLength: 64 }) },
    STRICT,
  ),
  data: redriveSchema,
  target: () => ({}),
  run: ({ id }, { redrives }) => redrives.cancel(id),
  detail: ({ id, redriven }) => `redrive ${id} stopped, ${messageCount(redriven)} sent back`,
})
