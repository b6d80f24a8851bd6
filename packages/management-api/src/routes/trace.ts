import { argument, isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { auditEntrySchema } from '../audit/audit-entry.ts'
import { readAudit } from '../audit/audit-query.ts'
import { invalidParameters } from '../errors.ts'
import { shownMessage, shownMessageSchema } from '../messages/shown-message.ts'
import type { TrailEvent, TrailStep } from '../trace/message-trail.ts'
import { MAX_REMEMBERED, TRAIL_EVENTS } from '../trace/message-trail.ts'
import type { Place } from '../trace/trace-message.ts'
import { MAX_PLACES, placesOf, stepsOf } from '../trace/trace-message.ts'
import { storedType } from './messages.ts'
import { defineManagementRoute, STRICT } from './route.ts'

/** The most bytes shown of a body. */
const MAX_BODY = 1_024

export const traceRoute = defineManagementRoute({
  path: '/api/trace',
  summary: `The known steps of a message: those among the last ${MAX_REMEMBERED} of all messages on this node, the audit log, and up to ${MAX_PLACES} channels that store it now.`,
  query: Type.Object(
    {
      id: Type.Optional(Type.String({ description: 'The id of the message.', minLength: 1, maxLength: 256 })),
      trace_id: Type.Optional(
        Type.String({
          description: 'The id of a trace, as in the tag traceparent: 32 hexadecimal digits.',
          minLength: 32,
          maxLength: 32,
        }),
      ),
      type: Type.Optional(storedType('The type of `channel`.')),
      channel: Type.Optional(argument.channel('A channel that may store the message; needs type.')),
    },
    STRICT,
  ),
  data: Type.Object({
    node: Type.String({ description: 'The node whose steps are shown.' }),
    ids: Type.Array(Type.String(), { description: 'The message, and the messages that repeat it.' }),
    steps: Type.Array(
      Type.Object({
        time: Type.String({ description: 'ISO 8601.' }),
        event: Type.Unsafe<TrailEvent>({ type: 'string', enum: [...TRAIL_EVENTS] }),
        times: Type.Integer({
          minimum: 1,
          description: 'The subscribers that got it in this step; 1 for other steps.',
        }),
        id: Type.String(),
        type: argument.channelType('The type of the channel.'),
        channel: Type.String(),
        party: Type.String({
          description:
            'The ClientID of the sender, of the first receiver, or of the operator; the code of an error; empty if not known.',
        }),
        other: Type.Optional(
          Type.String({ description: 'The message that it repeats, or that a redrive made of it.' }),
        ),
      }),
      { description: 'Oldest first.' },
    ),
    remembered_since: Type.Union([Type.String(), Type.Null()], {
      description: 'The node has forgotten older steps, ISO 8601; null if it remembers all since its start.',
    }),
    audit: Type.Array(auditEntrySchema, { description: 'The entries that name the message, newest first.' }),
    places: Type.Array(
      Type.Object({
        type: storedType('The type of the channel.'),
        channel: Type.String(),
        dead_letter_of: Type.Optional(Type.String({ description: 'The queue from which it moved here.' })),
        message: shownMessageSchema,
      }),
    ),
  }),
  async run({ id, trace_id: traceId, type, channel }, { services, operator, environment }) {
    if (id === undefined && traceId === undefined) {
      throw invalidParameters([{ parameter: 'id', allowed: 'given, unless trace_id is given' }])
    }
    if ((type === undefined) !== (channel === undefined)) {
      const parameter = type === undefined ? 'type' : 'channel'
      throw invalidParameters([{ parameter, allowed: 'given: type and channel belong together' }])
    }
    const { trail } = environment
    const { ids, steps } = stepsOf(trail, id, traceId)
    const given = type === undefined || channel === undefined ? undefined : { type, channel }
    const places = await placesOf(services.broker.as(operator), ids, steps, given)
    const page = { limit: 100, cursor: undefined }
    const audit = id === undefined ? [] : (await readAudit(services.system, { detail: id }, page)).items
    const { node } = await environment.node()
    return {
      node,
      ids: [...ids],
      steps: steps.map(shownStep),
      remembered_since: trail.forgotBefore === undefined ? null : isoTime(trail.forgotBefore),
      audit,
      places: places.map(shownPlace),
    }
  },
})

function shownStep({ at, event, times, id, type, channel, party, other }: TrailStep) {
  const step = { time: isoTime(at), event, times, id, type, channel, party }
  return other === undefined ? step : { ...step, other }
}

function shownPlace({ type, channel, source, message }: Place) {
  const place = { type, channel, message: shownMessage(message, MAX_BODY) }
  return source === undefined ? place : { ...place, dead_letter_of: source }
}
