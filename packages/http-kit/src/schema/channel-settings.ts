import type { SettingMember, SettingsEntry } from '@signalbox/broker-core'
import {
  channelNameProblem,
  isPattern,
  isReservedChannel,
  MAX_CHANNEL_BYTES,
  RESERVED_PREFIX,
  SETTING_MEMBERS,
} from '@signalbox/broker-core'
import { SchemaReader, shownText } from '@signalbox/broker-core/internal'
import { Type } from 'typebox'
import type { Static, TObject } from 'typebox'

import { channelType, optionalChannel, text, timestamp } from './argument-types.ts'
import type { ArgumentProblem } from './compile-arguments.ts'
import { argumentProblems, compileLater, shownValue } from './compile-arguments.ts'

/** The longest time of a setting, in seconds: a year. */
const YEAR_SECONDS = 31_536_000

/** The most versions of a schema, and the longest name of one. */
const MAX_VERSIONS = 8
const MAX_VERSION_NAME = 256
/** The longest JSON pointer that a problem shows. */
const MAX_POINTER = 200

/** The values of the parts of a member that an entry leaves out. */
const DEFAULTS = {
  retry: {
    max_receive_count: 0,
    dead_letter_queue: '',
    min_backoff_seconds: 0,
    max_backoff_seconds: 300,
    backoff_factor: 2,
    jitter: 0.2,
  },
  consumers: { paused_until: null, max_per_second: 0, max_in_flight: 0 },
  groups: { max_in_flight_per_group: 1 },
  retention: { on_expiry: 'drop', compact: false },
} as const

const STRICT = { additionalProperties: false } as const

/** A member that null sets to "no settings", so that less specific entries do not apply. */
function member<Parts extends TObject>(parts: Parts) {
  return Type.Optional(Type.Union([parts, Type.Null()]))
}

const whole = (description: string, by: number, maximum: number = Number.MAX_SAFE_INTEGER) =>
  Type.Optional(Type.Integer({ description, minimum: 0, maximum, default: by }))

const limit = (description: string, maximum: number = Number.MAX_SAFE_INTEGER) =>
  Type.Optional(
    Type.Integer({ description: `${description} Left out, the limit of the server applies.`, minimum: 0, maximum }),
  )

const seconds = (description: string, by: number) =>
  Type.Optional(Type.Number({ description, minimum: 0, maximum: YEAR_SECONDS, default: by }))

/** The members of an entry of the channel settings, as the file and the management API take them. */
export const channelSettingMembers = {
  description: Type.Optional(
    Type.Union([Type.String({ maxLength: 1_024 }), Type.Null()], { description: 'The purpose of the channel.' }),
  ),
  retry: member(
    Type.Object(
      {
        max_receive_count: whole(
          'Receives before a message moves to dead_letter_queue; 0 means unlimited.',
          DEFAULTS.retry.max_receive_count,
        ),
        dead_letter_queue: optionalChannel('Another queue; empty means none.'),
        min_backoff_seconds: seconds(
          'The delay after the first receive; 0 means none.',
          DEFAULTS.retry.min_backoff_seconds,
        ),
        max_backoff_seconds: seconds('The longest delay.', DEFAULTS.retry.max_backoff_seconds),
        backoff_factor: Type.Optional(
          Type.Number({
            description: 'The factor between two delays.',
            minimum: 1,
            maximum: 100,
            default: DEFAULTS.retry.backoff_factor,
          }),
        ),
        jitter: Type.Optional(
          Type.Number({
            description: 'The part of a delay that is random: it gets shorter by up to this part.',
            minimum: 0,
            maximum: 1,
            default: DEFAULTS.retry.jitter,
          }),
        ),
      },
      { ...STRICT, description: 'Queues: how often a message is delivered again, when, and its end.' },
    ),
  ),
  consumers: member(
    Type.Object(
      {
        paused_until: Type.Optional(
          Type.Union([timestamp('Nothing is received until this time, in RFC 3339 form.'), Type.Null()]),
        ),
        max_per_second: Type.Optional(
          Type.Number({
            description: 'The most deliveries in a second; 0 means unlimited.',
            minimum: 0,
            maximum: 1_000_000,
            default: DEFAULTS.consumers.max_per_second,
          }),
        ),
        max_in_flight: whole('The most leased messages; 0 means unlimited.', DEFAULTS.consumers.max_in_flight),
      },
      { ...STRICT, description: 'Queues: how fast receivers get messages.' },
    ),
  ),
  groups: member(
    Type.Object(
      {
        mode: Type.Enum(['ordered', 'fair'], {
          description:
            'ordered: one message of a group at a time, in the order of the sends. fair: the groups by turns.',
        }),
        max_in_flight_per_group: whole(
          'The most leased messages of one group; 0 means unlimited. Always 1 with ordered.',
          DEFAULTS.groups.max_in_flight_per_group,
        ),
      },
      { ...STRICT, description: 'Queues: how messages with the same group are delivered.' },
    ),
  ),
  retention: member(
    Type.Object(
      {
        max_age_seconds: limit(
          'The maximum age; 0 keeps all. In a queue, the expiration of messages that have none.',
          YEAR_SECONDS,
        ),
        max_messages: limit('Queues: the most messages; 0 means unlimited.'),
        max_bytes: limit('The maximum size; 0 means unlimited.'),
        on_expiry: Type.Optional(
          Type.Enum(['drop', 'dead_letter'], {
            description: 'Queues: expired messages are removed, or move to the dead-letter queue.',
            default: DEFAULTS.retention.on_expiry,
          }),
        ),
        compact: Type.Optional(
          Type.Boolean({
            description: 'Events stores: true keeps only the last entry of each key.',
            default: DEFAULTS.retention.compact,
          }),
        ),
      },
      { ...STRICT, description: 'Queues and events stores: how long and how much is kept.' },
    ),
  ),
  deduplication: member(
    Type.Object(
      {
        window_seconds: Type.Integer({
          description: 'The time in which a repeated send is recognized.',
          minimum: 1,
          maximum: 86_400,
        }),
      },
      { ...STRICT, description: 'Queues and events stores: repeated sends.' },
    ),
  ),
  schema: member(
    Type.Object(
      {
        default: text('The version for messages that name none.', { minLength: 1 }),
        versions: Type.Record(Type.String(), Type.Unknown(), {
          description: 'JSON Schemas (2020-12) by name. The attribute dataschema of a message selects one.',
          minProperties: 1,
          maxProperties: MAX_VERSIONS,
        }),
      },
      { ...STRICT, description: 'The form that bodies must have.' },
    ),
  ),
}

/** The channels that an entry is for. */
export const channelSettingTarget = {
  type: channelType('The type of the channels.'),
  match: text('The name of a channel, or a pattern: `*` matches any characters, dots included, and `?` matches one.', {
    minLength: 1,
  }),
}

const entrySchema = Type.Object({ ...channelSettingTarget, ...channelSettingMembers }, STRICT)

/** An entry as it is given, without defaults. */
export type GivenSettings = Static<typeof entrySchema>

const check = compileLater(entrySchema)

/** The types of channels that have a member. The others are for all types. */
const TYPES_WITH: Partial<Record<SettingMember, readonly string[]>> = {
  retry: ['queues'],
  consumers: ['queues'],
  groups: ['queues'],
  retention: ['queues', 'events_store'],
  deduplication: ['queues', 'events_store'],
}

/** The maximum size of an entry as JSON, in bytes. */
const MAX_ENTRY_BYTES = 65_536

/**
 * Reads an entry of the channel settings. Returns it with its defaults, or every problem.
 * @param source Where the entry comes from
 */
export function readChannelSettings(
  given: unknown,
  source: SettingsEntry['source'],
):
  | { readonly given: GivenSettings; readonly entry: SettingsEntry }
  | { readonly problems: readonly ArgumentProblem[] } {
  if (!check.Check(given)) return { problems: argumentProblems(entrySchema, given, 'entry') }
  const problems = [...targetProblems(given), ...memberProblems(given)]
  if (problems.length > 0) return { problems }
  const { retry, consumers, groups, retention, ...rest } = given
  return {
    given,
    entry: {
      ...rest,
      source,
      retry: retry && { ...DEFAULTS.retry, ...retry },
      consumers: consumers && { ...DEFAULTS.consumers, ...consumers },
      groups: groups && { ...DEFAULTS.groups, ...groups },
      retention: retention && { ...DEFAULTS.retention, ...retention },
    },
  }
}

function targetProblems({ match }: GivenSettings): readonly ArgumentProblem[] {
  const problem = (allowed: string): readonly ArgumentProblem[] => [
    { argument: 'match', given: shownValue(match), allowed },
  ]
  if (isReservedChannel(match)) return problem(`a name or pattern that does not begin with ${RESERVED_PREFIX}`)
  if (isPattern({ match })) {
    return Buffer.byteLength(match) > MAX_CHANNEL_BYTES ? problem(`at most ${MAX_CHANNEL_BYTES} bytes`) : []
  }
  const invalid = channelNameProblem(match)
  return invalid === undefined ? [] : problem(`a channel name, or a pattern with * or ? (${invalid})`)
}

function memberProblems(given: GivenSettings): readonly ArgumentProblem[] {
  const problems: ArgumentProblem[] = []
  const refuse = (argument: string, value: unknown, allowed: string): void => {
    problems.push({ argument, given: shownValue(value), allowed })
  }
  const { type, match, retry, groups, retention, schema } = given
  if (SETTING_MEMBERS.every((name) => given[name] === undefined)) {
    refuse('settings', {}, `at least one of ${SETTING_MEMBERS.join(', ')}`)
  }
  if (Buffer.byteLength(JSON.stringify(given)) > MAX_ENTRY_BYTES) {
    refuse('settings', given, `at most ${MAX_ENTRY_BYTES} bytes as JSON`)
  }
  for (const name of SETTING_MEMBERS) {
    const types = TYPES_WITH[name]
    if (given[name] && types?.includes(type) === false) {
      refuse(name, given[name], `absent for ${type}: only ${types.join(' and ')} have it`)
    }
  }
  if (retry) {
    const { min_backoff_seconds: min, max_backoff_seconds: max } = { ...DEFAULTS.retry, ...retry }
    if (min > max) refuse('retry.min_backoff_seconds', min, `at most max_backoff_seconds, which is ${max}`)
    if (retry.dead_letter_queue === match) refuse('retry.dead_letter_queue', match, 'another queue than match')
    if (retry.dead_letter_queue !== undefined && isReservedChannel(retry.dead_letter_queue)) {
      refuse('retry.dead_letter_queue', retry.dead_letter_queue, `a queue that does not begin with ${RESERVED_PREFIX}`)
    }
  }
  const perGroup = groups?.max_in_flight_per_group
  if (groups?.mode === 'ordered' && perGroup !== undefined && perGroup !== 1) {
    refuse('groups.max_in_flight_per_group', perGroup, '1 with the mode ordered')
  }
  if (retention) {
    for (const name of ['max_messages', 'on_expiry'] as const) {
      if (type !== 'queues' && retention[name] !== undefined)
        refuse(`retention.${name}`, retention[name], 'absent: only queues have it')
    }
    if (type === 'queues' && retention.compact !== undefined) {
      refuse('retention.compact', retention.compact, 'absent: only events stores have it')
    }
  }
  if (schema && !Object.hasOwn(schema.versions, schema.default)) {
    refuse('schema.default', schema.default, `a name in versions: ${Object.keys(schema.versions).join(', ')}`)
  }
  for (const [name, version] of Object.entries(schema?.versions ?? {})) {
    const at = `schema.versions.${shownText(name)}`
    if (name === '' || name.length > MAX_VERSION_NAME) refuse(at, name, `a name of 1 to ${MAX_VERSION_NAME} characters`)
    for (const { pointer, given: part, allowed } of new SchemaReader(version).problems) {
      refuse(`${at} ${shownText(pointer, MAX_POINTER)}`, part, allowed)
    }
  }
  return problems
}
