import { CATCHUP_SECONDS, isoTime, scheduleId, scheduleMembers } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { invalidArguments, ManagementError } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { ActionCall, Operation } from '../operation.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { ScheduleStatus, SchedulesPort } from '../ports.ts'

/** The due times in an answer. */
const NEXT_TIMES = 3

const time = (description: string) => Type.Optional(Type.String({ description: `${description} ISO 8601.` }))

const scheduleData = Type.Object({
  ...scheduleMembers,
  revision: Type.Integer({ minimum: 1, description: 'For conditional changes.' }),
  changed_by: Type.String({ description: 'The ClientID of the operator who wrote the schedule.' }),
  changed_at: Type.String({ description: 'ISO 8601.' }),
  next_times: Type.Array(Type.String(), {
    description: `The next ${NEXT_TIMES} due times, ISO 8601; none while it is paused, and after its last one.`,
  }),
  last_time: time('The last due time with a message. Absent before the first.'),
  last_sent_at: time('The time of that message.'),
  missed: Type.Integer({ minimum: 0, description: 'The due times that passed without a message.' }),
  failure: Type.Optional(
    Type.Object(
      { time: Type.String({ description: 'The due time, ISO 8601.' }), reason: Type.String() },
      { description: 'The reason for which the message of a due time could not be sent. It is tried again.' },
    ),
  ),
})

function shownSchedule({ given, revision, changedBy, changedAt, record, next }: ScheduleStatus) {
  const { sent, failure, missed } = record
  const { cron, time_zone = 'UTC', message, catchup_window_seconds = CATCHUP_SECONDS, paused = false } = given
  return {
    ...given,
    ...(cron === undefined ? {} : { time_zone }),
    message: { metadata: '', tags: {}, ...message },
    catchup_window_seconds,
    paused,
    revision,
    changed_by: changedBy,
    changed_at: isoTime(changedAt),
    next_times: next(NEXT_TIMES).map(isoTime),
    ...(sent === undefined ? {} : { last_time: isoTime(sent.time), last_sent_at: isoTime(sent.at) }),
    missed,
    ...(failure === undefined ? {} : { failure: { time: isoTime(failure.time), reason: failure.reason } }),
  }
}

const schedulesRoute = defineManagementRoute({
  name: '/api/schedules',
  summary: 'The schedules, with their next due times and their results.',
  input: Type.Object({ id: Type.Optional(scheduleId), ...pagingParameters }, STRICT),
  output: pageSchema(scheduleData),
  run({ id, ...paging }, { services }) {
    const all = (services.schedules?.list() ?? []).filter(({ given }) => id === undefined || given.id === id)
    const page = pageOf(all, ({ given }) => given.id, paging)
    return { ...page, items: page.items.map(shownSchedule) }
  },
})

/** @throws ManagementError NOT_READY */
function portOf({ services }: ActionCall): SchedulesPort {
  const { schedules } = services
  if (schedules === undefined) throw new ManagementError('NOT_READY', 'this host has no schedules')
  return schedules
}

function notFound(id: string): ManagementError {
  const text = `no schedule has the id ${JSON.stringify(id)}; /api/schedules lists the schedules`
  return new ManagementError('SCHEDULE_NOT_FOUND', text, { id })
}

const revision = Type.Optional(
  Type.Integer({
    description: 'The revision that the schedule must have; 0 if there must be none. A changed schedule is a CONFLICT.',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  }),
)

const setSchedule = defineAction({
  name: 'set_schedule',
  summary: 'Writes a schedule, which sends a message at its due times; it replaces the schedule with the same id.',
  input: Type.Object({ ...scheduleMembers, revision }, STRICT),
  output: scheduleData,
  target: ({ target }) => target,
  async run({ revision: expected, ...given }, call) {
    const port = portOf(call)
    const problems = port.problems(given)
    if (problems.length > 0) throw invalidArguments('set_schedule', problems)
    const written = await port.set(given, call.operator.clientId, expected)
    if (written === undefined) throw notFound(given.id)
    return shownSchedule(written)
  },
  detail: ({ id, revision: written }) => `${id}, revision ${written}`,
})

const removeSchedule = defineAction({
  name: 'remove_schedule',
  summary: 'Removes a schedule.',
  input: Type.Object({ id: scheduleId, revision }, STRICT),
  output: Type.Object({ id: Type.String() }),
  async run({ id, revision: expected }, call) {
    if (!(await portOf(call).remove(id, expected))) throw notFound(id)
    return { id }
  },
  detail: ({ id }) => id,
})

const input = Type.Object({ id: scheduleId }, STRICT)

async function setPaused(id: string, paused: boolean, call: ActionCall) {
  const changed = await portOf(call).setPaused(id, paused, call.operator.clientId)
  if (changed === undefined) throw notFound(id)
  return shownSchedule(changed)
}

const pauseSchedule = defineAction({
  name: 'pause_schedule',
  summary: 'Stops a schedule until it is resumed.',
  input,
  output: scheduleData,
  run: ({ id }, call) => setPaused(id, true, call),
  detail: ({ id }) => id,
})

const resumeSchedule = defineAction({
  name: 'resume_schedule',
  summary: 'Continues a paused schedule. Due times in the pause are not sent later.',
  input,
  output: scheduleData,
  run: ({ id }, call) => setPaused(id, false, call),
  detail: ({ id }) => id,
})

const triggerSchedule = defineAction({
  name: 'trigger_schedule',
  summary: 'Sends the message of a schedule now. Its due times stay.',
  input,
  output: Type.Object({ id: Type.String(), message_id: Type.String({ description: 'The id of the message.' }) }),
  async run({ id }, call) {
    const sent = await portOf(call).trigger(id)
    if (sent === undefined) throw notFound(id)
    return { id, message_id: sent.messageId }
  },
  detail: ({ id, message_id }) => `${id}: message ${message_id}`,
})

export const scheduleOperations: readonly Operation[] = [
  schedulesRoute,
  setSchedule,
  removeSchedule,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
]
