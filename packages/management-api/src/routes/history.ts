import { argument, parseTimestamp } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { invalidParameters } from '../errors.ts'
import type { HistoryRequest } from '../history/history-answer.ts'
import { historyAnswer } from '../history/history-answer.ts'
import { historyData } from '../history/history-schema.ts'
import { MAX_TRACKED } from '../history/history.ts'
import { defineManagementRoute, STRICT } from './route.ts'

/** The default number of channels and agents in an answer. */
const DEFAULT_TRACKED = 10

const tracked = (what: string) =>
  Type.Optional(
    Type.Integer({
      description: `The most ${what} in the answer.`,
      minimum: 0,
      maximum: MAX_TRACKED,
      default: DEFAULT_TRACKED,
    }),
  )

const historyQuery = Type.Object(
  {
    range: Type.Optional(
      Type.Union([Type.Literal('hour'), Type.Literal('day')], {
        description: 'hour: the last hour in steps of 5 s. day: the last day in steps of 1 min.',
        default: 'hour',
      }),
    ),
    after: Type.Optional(
      argument.timestamp('Only steps that begin at or after this time: `end` of the previous answer, ISO 8601.'),
    ),
    channels: tracked('channels'),
    agents: tracked('agents'),
    channel: Type.Optional(
      Type.String({
        description:
          'Only this channel of the type `type`, instead of the most active ones. The node follows it for ten minutes after each such request.',
        minLength: 1,
        maxLength: 512,
      }),
    ),
    type: Type.Optional(argument.channelType('The type of `channel`.')),
    agent_id: Type.Optional(
      Type.String({ description: 'Only this agent, instead of the most active ones.', minLength: 1, maxLength: 512 }),
    ),
  },
  STRICT,
)

export const historyRoute = defineManagementRoute({
  path: '/api/history',
  summary: 'Numbers of this node for plots: the last hour in steps of 5 s, or the last day in minutes.',
  query: historyQuery,
  data: historyData,
  async run(query, { environment }) {
    const request: HistoryRequest = {
      range: query.range ?? 'hour',
      after: query.after === undefined ? 0 : (parseTimestamp(query.after) ?? 0),
      channels: channelOf(query) ?? query.channels ?? DEFAULT_TRACKED,
      agents: query.agent_id ?? query.agents ?? DEFAULT_TRACKED,
    }
    const [{ node }, answer] = await Promise.all([environment.node(), historyAnswer(environment.history, request)])
    return { node, ...answer }
  },
})

/** @throws ManagementError PARAMETER_INVALID if one of the two parameters is missing */
function channelOf({ type, channel }: Static<typeof historyQuery>) {
  if (type !== undefined && channel !== undefined) return { type, name: channel }
  if (type === undefined && channel === undefined) return undefined
  const [parameter, other] = type === undefined ? ['type', 'channel'] : ['channel', 'type']
  throw invalidParameters([{ parameter, given: 'missing', allowed: `given together with ${other}` }])
}
