import type { ChannelType } from '../../channel.ts'
import type { BrokerErrorCode } from '../../errors.ts'
import { BrokerError } from '../../errors.ts'
import { Pace } from '../../in-turns.ts'
import { parseJsonText } from '../../json-text.ts'
import type { OutgoingMessage } from '../../message.ts'
import { decodeText } from '../../message.ts'
import { shownText, withoutControls } from '../../text.ts'
import type { SchemaSettings } from '../channel-settings.ts'
import type { SettingsTable } from '../settings-table.ts'
import type { BodyProblem } from './body-schema.ts'
import { BodySchema } from './body-schema.ts'

/** The maximum size of a body that is checked, in bytes: reading more would block the event loop for too long. */
const MAX_CHECKED_BYTES = 1_048_576
/** The most commas, colons and opening brackets of a body that is checked; those in texts count. */
const MAX_CHECKED_MARKS = 32_768
/** The characters `,`, `:`, `[` and `{`. */
const MARKS = new Set([44, 58, 91, 123])

/** The tag that selects a version: the attribute `dataschema` of CloudEvents. */
const VERSION_TAG = 'ce_dataschema'

/** The schemas that were used, by name. Forgotten when their entry changes. */
const SCHEMAS = new WeakMap<SchemaSettings, Map<string, BodySchema>>()

/** The checks of batches and of copies share the time. */
const pace = new Pace()

type Content = Pick<OutgoingMessage, 'body' | 'tags'>

/**
 * Checks a body against the schema of its channel, if there is one.
 * @throws BrokerError SCHEMA_MISMATCH, SETTING_UNSUPPORTED
 */
export function checkBody(settings: SettingsTable, type: ChannelType, channel: string, message: Content): void {
  if (!settings.active) return
  const { schema, unreadable } = settings.of(type, channel)
  const name = `${type} ${shownText(channel)}`
  if (unreadable) {
    throw new BrokerError(
      'SETTING_UNSUPPORTED',
      `an entry of the channel settings for ${name} is of a newer version, and this node cannot read it: it accepts no messages; update this node, or write the entry again`,
      { type, channel },
    )
  }
  if (schema === undefined) return
  const version = message.tags[VERSION_TAG] ?? schema.default
  const refuse = (
    text: string,
    details: Readonly<Record<string, unknown>>,
    code: BrokerErrorCode = 'SCHEMA_MISMATCH',
  ) => new BrokerError(code, text, { type, channel, ...details })
  if (!Object.hasOwn(schema.versions, version)) {
    const versions = Object.keys(schema.versions)
    throw refuse(`${name} has no schema ${shownText(version)}; allowed for dataschema are ${versions.join(', ')}`, {
      versions,
    })
  }
  const problems = problemsOf(schema, version, message.body, (reason) =>
    refuse(`the schema ${shownText(version)} of ${name} cannot be used: ${reason}`, { version }, 'SETTING_UNSUPPORTED'),
  )
  if (problems.length === 0) return
  const text = problems.map(({ pointer, problem }) => `${pointer || 'it'} ${problem}`).join('; ')
  throw refuse(`the body does not match the schema ${shownText(version)} of ${name}: ${withoutControls(text)}`, {
    version,
    problems,
  })
}

/**
 * Checks like {@link checkBody}, and yields to the event loop between the messages. Returns undefined, so that the
 * caller need not wait, if the channel has no schema.
 */
export function checkBodies(
  settings: SettingsTable,
  type: ChannelType,
  channel: string,
  messages: readonly Content[],
): Promise<void> | undefined {
  if (!settings.active) return undefined
  const { schema, unreadable } = settings.of(type, channel)
  return schema || unreadable ? checkEach(settings, type, channel, messages) : undefined
}

async function checkEach(
  settings: SettingsTable,
  type: ChannelType,
  channel: string,
  messages: readonly Content[],
): Promise<void> {
  for (const message of messages) {
    while (pace.isOver) await pace.rest()
    pace.run(() => checkBody(settings, type, channel, message))
  }
}

function problemsOf(
  schema: SchemaSettings,
  version: string,
  body: Uint8Array,
  unusable: (reason: string) => BrokerError,
): readonly BodyProblem[] {
  const { byteLength } = body
  if (byteLength > MAX_CHECKED_BYTES) {
    return [
      { pointer: '', problem: `has ${byteLength} bytes; with a schema, at most ${MAX_CHECKED_BYTES} are allowed` },
    ]
  }
  if (byteLength > MAX_CHECKED_MARKS && marksIn(body) > MAX_CHECKED_MARKS) {
    return [{ pointer: '', problem: `has too many values; with a schema, some ${MAX_CHECKED_MARKS / 2} are allowed` }]
  }
  const known = SCHEMAS.get(schema) ?? new Map<string, BodySchema>()
  SCHEMAS.set(schema, known)
  let check = known.get(version)
  if (check === undefined) {
    try {
      check = new BodySchema(schema.versions[version])
    } catch (error) {
      throw unusable(error instanceof Error ? error.message : String(error))
    }
    known.set(version, check)
  }
  let value: unknown
  try {
    value = parseJsonText(decodeText(body) ?? '')
  } catch {
    return [{ pointer: '', problem: 'must be JSON' }]
  }
  return check.problems(value)
}

function marksIn(body: Uint8Array): number {
  let count = 0
  for (const byte of body) if (MARKS.has(byte)) count++
  return count
}
