import type { BrokerHandle, ChannelType } from '@signalbox/broker-core'
import { traceContextOf } from '@signalbox/broker-core/internal'
import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { auditEntrySchema } from '../audit/audit-entry.ts'
import { readAudit } from '../audit/audit-operations.ts'
import { deadLetterOf } from '../dead-letters/redrive.ts'
import { invalidParameters } from '../errors.ts'
import { findMessage } from '../messages/find-messages.ts'
import { shownMessage, shownMessageSchema, storedType } from '../messages/shown-message.ts'
import type { StoredChannel, StoredMessage } from '../messages/stored-messages.ts'
import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { MAX_REMEMBERED, TRAIL_EVENTS } from './message-trail.ts'
import type { MessageTrail, TrailEvent, TrailStep } from './message-trail.ts'

/** The most bytes shown of a body. */
const MAX_BODY = 1_024

/** The most channels, and messages in each, that a trace searches. */
const MAX_PLACES = 8

const traceRoute = defineManagementRoute({
  name: '/api/trace',
  summary: `The known steps of a message: those among the last ${MAX_REMEMBERED} of all messages on this node, the audit log, and up to ${MAX_PLACES} channels that store it now.`,
  input: Type.Object(
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
  output: Type.Object({
    node: Type.String({ description: 'The node whose steps are shown.' }),
    trace_id: Type.Optional(
      Type.String({ description: 'The id of the trace of the message; absent if it is not known.' }),
    ),
    trace_url: Type.Optional(
      Type.String({ description: 'The page of the trace in your tracing system, by `CONSOLE_TRACE_URL`.' }),
    ),
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
    const trace = traceId ?? steps.find((step) => step.trace !== undefined)?.trace ?? traceIn(places)
    return {
      node,
      trace_id: trace,
      trace_url: trace === undefined ? undefined : environment.traceUrl(trace),
      ids: [...ids],
      steps: steps.map(shownStep),
      remembered_since: trail.forgotBefore === undefined ? null : isoTime(trail.forgotBefore),
      audit,
      places: places.map(shownPlace),
    }
  },
})

export const traceOperations: readonly Operation[] = [traceRoute]

function shownStep({ at, event, times, id, type, channel, party, other }: TrailStep) {
  return { time: isoTime(at), event, times, id, type, channel, party, other }
}

function shownPlace({ type, channel, source, message }: Place) {
  return { type, channel, message: shownMessage(message, MAX_BODY), dead_letter_of: source }
}

/** Returns the id of the trace that a stored message names. */
function traceIn(places: readonly Place[]): string | undefined {
  const { traceparent } = places[0]?.message.tags ?? {}
  return traceparent === undefined ? undefined : traceContextOf(traceparent)?.traceId
}

/** The most steps of a trace. */
const MAX_STEPS = 500

/** The most rounds in which a trace follows repeated and redriven messages. */
const MAX_ROUNDS = 5

/** A channel that stores a message now. */
interface Place extends StoredChannel {
  readonly message: StoredMessage
  /** The queue that a dead letter came from. */
  readonly source: string | undefined
}

/** Returns the steps of a message, or of a trace, and of the messages that repeat it. */
function stepsOf(
  trail: MessageTrail,
  id: string | undefined,
  traceId: string | undefined,
): { readonly ids: readonly string[]; readonly steps: readonly TrailStep[] } {
  const ids = new Set(id === undefined ? [] : [id])
  const isMeant = (step: TrailStep): boolean =>
    ids.has(step.id) ||
    (step.other !== undefined && ids.has(step.other)) ||
    (traceId !== undefined && step.trace === traceId)
  let steps: readonly TrailStep[] = []
  for (let round = 0, known = -1; round < MAX_ROUNDS && known !== ids.size; round++) {
    known = ids.size
    steps = trail.find(isMeant).slice(-MAX_STEPS)
    for (const { id: one, other = one } of steps) ids.add(one).add(other)
  }
  return { ids: [...ids], steps: acceptedFirst(steps) }
}

/** Moves acceptances before the deliveries of their messages: an engine may deliver before it accepts. */
function acceptedFirst(steps: readonly TrailStep[]): readonly TrailStep[] {
  const ordered: TrailStep[] = []
  for (const step of steps) {
    const at = step.event === 'accepted' ? ordered.findIndex(({ id }) => id === step.id) : -1
    if (at === -1) ordered.push(step)
    else ordered.splice(at, 0, step)
  }
  return ordered
}

/** Returns the channels of the steps that store one of the messages now. */
async function placesOf(
  broker: BrokerHandle,
  ids: readonly string[],
  steps: readonly TrailStep[],
  given: StoredChannel | undefined,
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const channel of channelsOf(steps, given)) {
    for (const id of ids.slice(0, MAX_PLACES)) {
      const message = await findMessage(broker, channel, { id })
      if (message === undefined) continue
      const source = 'receiveCount' in message ? deadLetterOf(message)?.source : undefined
      places.push({ ...channel, message, source })
    }
  }
  return places
}

function channelsOf(steps: readonly TrailStep[], given: StoredChannel | undefined): readonly StoredChannel[] {
  const channels = new Map<string, StoredChannel>()
  const add = (type: ChannelType, channel: string | undefined): void => {
    if (channel === undefined || (type !== 'queues' && type !== 'events_store')) return
    channels.set(`${type} ${channel}`, { type, channel })
  }
  if (given !== undefined) add(given.type, given.channel)
  for (const { type, channel, deadLetterQueue } of steps) {
    add(type, channel)
    add('queues', deadLetterQueue)
  }
  return [...channels.values()].slice(0, MAX_PLACES)
}
