import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import {
  deadLetterQueues,
  findDeadLetterQueues,
  MAX_LISTED_QUEUES,
  MAX_QUEUES,
  PROBED,
} from '../dead-letters/dead-letter-queues.ts'
import { deadLetterGroups, groupDeadLetters, MAX_GROUPS } from '../dead-letters/group-dead-letters.ts'
import { redriveSchema } from '../dead-letters/redrives.ts'
import { MAX_EXAMINED } from '../messages/find-messages.ts'
import { pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

export const deadLettersRoute = defineManagementRoute({
  path: '/api/dead_letters',
  summary: `The dead letters of a queue, counted by source and reason in up to ${MAX_GROUPS} groups. One request looks at up to ${MAX_EXAMINED} messages, 64 MiB or 5 s.`,
  query: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      from_sequence: Type.Optional(
        Type.Integer({
          description: 'The first message to look at: `next_sequence` of the previous request.',
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      ),
    },
    STRICT,
  ),
  data: deadLetterGroups,
  async run({ channel, from_sequence: fromSequence }, { services, operator }) {
    const broker = services.broker.as(operator)
    await broker.channels.info('queues', channel)
    return groupDeadLetters(broker, channel, fromSequence)
  },
})

export const deadLetterQueuesRoute = defineManagementRoute({
  path: '/api/dead_letter_queues',
  summary: `The queues that hold dead letters now, with their sources, in pages by name. A queue is listed if one of its first ${PROBED} messages is a dead letter. One request looks at up to ${MAX_QUEUES} queues or 3 s, and lists up to ${MAX_LISTED_QUEUES}.`,
  query: Type.Object({ cursor: pagingParameters.cursor }, STRICT),
  data: deadLetterQueues,
  run: ({ cursor }, { services, operator, environment }) =>
    findDeadLetterQueues(services.broker.as(operator), environment.channelIndex, cursor),
})

export const redrivesRoute = defineManagementRoute({
  path: '/api/redrives',
  summary:
    'The redrives that this node runs or has finished, newest first, with their progress and the messages that they left.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    node: Type.String({ description: 'The node that runs the redrives.' }),
    items: Type.Array(redriveSchema),
  }),
  async run(_query, { environment }) {
    const { node } = await environment.node()
    return { node, items: environment.redrives.list() }
  },
})
