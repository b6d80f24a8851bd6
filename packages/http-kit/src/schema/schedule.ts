import { isReservedChannel, RESERVED_PREFIX } from '@signalbox/broker-core'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { channel, CHANNEL_RULES, metadata, tags, text, timestamp } from './argument-types.ts'
import type { ArgumentProblem } from './compile-arguments.ts'
import { argumentProblems, compileLater, shownValue } from './compile-arguments.ts'

const DAY_SECONDS = 86_400

/** The types of channels that a schedule can send to. No caller could read the answer to a command or a query. */
const SCHEDULE_TARGETS = ['queues', 'events_store', 'events'] as const

/** The catch-up window of a schedule that names none, in seconds. */
export const CATCHUP_SECONDS = 3_600

const STRICT = { additionalProperties: false } as const

/** The maximum size of a schedule as JSON, in bytes. */
const MAX_BYTES = 65_536

export const scheduleId = Type.Refine(
  Type.String({ description: 'The name of the schedule: 1 to 128 letters, digits, and . _ -', maxLength: 128 }),
  (id) => /^[\w.-]{1,128}$/.test(id),
  () => '1 to 128 letters, digits, and . _ -',
)

/** The members of a schedule, as the management API takes them. */
export const scheduleMembers = {
  id: scheduleId,
  cron: Type.Optional(
    Type.String({
      description: 'Five fields: minute, hour, day of the month, month, day of the week. `30 9 * * MON-FRI` is 9:30.',
      maxLength: 256,
    }),
  ),
  every_seconds: Type.Optional(
    Type.Integer({
      description: 'The time between two messages, from the change that set it.',
      minimum: 10,
      maximum: 366 * DAY_SECONDS,
    }),
  ),
  at: Type.Optional(timestamp('The time of one single message, in RFC 3339 form.')),
  time_zone: Type.Optional(
    Type.String({ description: 'The time zone of cron, such as Europe/Berlin.', maxLength: 64, default: 'UTC' }),
  ),
  target: Type.Object(
    {
      type: Type.Enum([...SCHEDULE_TARGETS], { description: 'The type of the channel.' }),
      channel: channel(CHANNEL_RULES),
    },
    { ...STRICT, description: 'The channel that gets the messages.' },
  ),
  message: Type.Object(
    { body: text('The payload: plain text or JSON as text.'), metadata: metadata(), tags: tags() },
    { ...STRICT, description: 'The message that is sent each time.' },
  ),
  catchup_window_seconds: Type.Optional(
    Type.Integer({
      description: 'A message that could not be sent at its time is sent later, for at most this time.',
      minimum: 10,
      maximum: 7 * DAY_SECONDS,
      default: CATCHUP_SECONDS,
    }),
  ),
  paused: Type.Optional(Type.Boolean({ description: 'True sends nothing until it is resumed.', default: false })),
}

const scheduleSchema = Type.Object(scheduleMembers, STRICT)

/** A schedule as it is given, without defaults. */
export type GivenSchedule = Static<typeof scheduleSchema>

const check = compileLater(scheduleSchema)

/** Returns whether a value has the form of a schedule. */
export function isSchedule(value: unknown): value is GivenSchedule {
  return check.Check(value)
}

/** The tags that each message of a schedule gets. */
const SCHEDULE_TAGS = ['message_id', 'schedule_id', 'schedule_time'] as const

/** Returns every problem of a schedule, except those of its times. */
export function scheduleProblems(given: unknown): readonly ArgumentProblem[] {
  if (!isSchedule(given)) return argumentProblems(scheduleSchema, given, 'schedule')
  const problems: ArgumentProblem[] = []
  const refuse = (argument: string, value: unknown, allowed: string): void => {
    problems.push({ argument, given: shownValue(value), allowed })
  }
  const { cron, every_seconds, at, time_zone, target, message } = given
  const times = [cron, every_seconds, at].filter((time) => time !== undefined)
  if (times.length === 0) problems.push({ argument: 'cron', allowed: 'given, or every_seconds, or at' })
  if (times.length > 1) refuse('cron, every_seconds and at', `${times.length} of them`, 'one of them')
  if (time_zone !== undefined && cron === undefined) refuse('time_zone', time_zone, 'absent: only cron has it')
  if (isReservedChannel(target.channel)) {
    refuse('target.channel', target.channel, `a channel that does not begin with ${RESERVED_PREFIX}`)
  }
  for (const tag of SCHEDULE_TAGS) {
    const value = message.tags?.[tag]
    if (value !== undefined) refuse(`message.tags.${tag}`, value, 'absent: the schedule sets it')
  }
  if (Buffer.byteLength(JSON.stringify(given)) > MAX_BYTES) {
    refuse('schedule', given, `at most ${MAX_BYTES} bytes as JSON`)
  }
  return problems
}
