import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { deadLetterGroups, groupDeadLetters, MAX_GROUPS } from '../dead-letters/group-dead-letters.ts'
import { redriveSchema } from '../dead-letters/redrives.ts'
import { MAX_EXAMINED } from '../messages/find-messages.ts'
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
