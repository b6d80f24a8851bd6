import { PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import { argument, isoTime, parseTimestamp } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, ofType, STRICT } from '../operation.ts'
import type { ActionCall, Operation } from '../operation.ts'
import type { QueuePausesPort } from '../ports.ts'

export const pausedUntilOrNull = Type.Union([Type.String(), Type.Null()], {
  description:
    'The end of the pause of a queue, ISO 8601; `9999-12-31T23:59:59.000Z` until it is resumed, null without a pause.',
})

/** The longest pause in seconds: a year. */
const MAX_SECONDS = 31_536_000

function portOf({ services }: ActionCall): QueuePausesPort {
  const { queuePauses } = services
  if (queuePauses === undefined) throw new ManagementError('NOT_READY', 'this host stores no pauses')
  return queuePauses
}

const queue = argument.channel(`The queue. ${argument.CHANNEL_RULES}`)

const pauseQueue = defineAction({
  name: 'pause_queue',
  summary: 'Pauses a queue: its receivers wait. Sends, acks, peeks and receives of operators continue.',
  input: Type.Object(
    {
      channel: queue,
      until: Type.Optional(
        Type.Union([argument.timestamp('The end of the pause, ISO 8601.'), Type.Null()], {
          description: 'The end of the pause, ISO 8601; null until resume_queue. Give this or seconds.',
        }),
      ),
      seconds: Type.Optional(
        Type.Integer({ description: 'The length of the pause.', minimum: 1, maximum: MAX_SECONDS }),
      ),
      reason: Type.Optional(Type.String({ description: 'Shown to operators.', maxLength: 1_024 })),
    },
    STRICT,
  ),
  output: Type.Object({ channel: Type.String(), paused_until: Type.String({ description: 'ISO 8601.' }) }),
  target: ofType('queues'),
  rule: ({ until, seconds }) => {
    if ((until === undefined) === (seconds === undefined)) {
      return { argument: 'until', allowed: 'given, as a time or null, if seconds is not' }
    }
    return typeof until === 'string' && (parseTimestamp(until) ?? 0) <= Date.now()
      ? { argument: 'until', allowed: 'a time in the future' }
      : undefined
  },
  async run({ channel, until = null, seconds, reason = '' }, call) {
    // A mistyped name would look like success.
    await call.broker.channels.info('queues', channel)
    const given = until === null ? PAUSED_UNTIL_RESUMED : (parseTimestamp(until) ?? 0)
    const end = seconds === undefined ? given : Date.now() + seconds * 1000
    await portOf(call).pause(channel, { until: end, reason, changedBy: call.operator.clientId })
    return { channel, paused_until: isoTime(end) }
  },
  detail: ({ paused_until: end }) => `until ${end}`,
})

const resumeQueue = defineAction({
  name: 'resume_queue',
  summary: 'Ends the pause of a queue by pause_queue or by a receiver. Channel settings may still pause it.',
  input: Type.Object({ channel: queue }, STRICT),
  output: Type.Object({
    channel: Type.String(),
    resumed: Type.Boolean({ description: 'False if the queue had no such pause.' }),
    paused_until: pausedUntilOrNull,
  }),
  target: ofType('queues'),
  async run({ channel }, call) {
    const resumed = await portOf(call).resume(channel)
    const until = call.services.broker.pausedUntil(channel)
    return { channel, resumed, paused_until: until === undefined ? null : isoTime(until) }
  },
  detail: ({ resumed }) => (resumed ? 'resumed' : 'was not paused'),
})

export const pauseOperations: readonly Operation[] = [pauseQueue, resumeQueue]
