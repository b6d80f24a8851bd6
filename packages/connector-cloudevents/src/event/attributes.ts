import { createRequire } from 'node:module'

import type { MessageInput, Tags } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type * as CloudEvents from 'cloudevents'

import { CeError } from '../errors.ts'

/** A received event, ready to be sent. */
export interface IncomingEvent {
  readonly subject: string | undefined
  readonly message: MessageInput & { readonly body: Uint8Array; readonly tags: Tags }
}

/**
 * The JSON type of an attribute (CloudEvents JSON format 2.2). Every value that is no number and no boolean is a
 * string.
 */
export type AttributeType = 'string' | 'integer' | 'boolean'

/** The context attributes of one event as text. Numbers keep their digits. */
export interface Attributes {
  readonly texts: ReadonlyMap<string, string>
  /** The types of the attributes that are not strings. */
  readonly types: ReadonlyMap<string, AttributeType>
}

const NAME = /^[a-z0-9]+$/

/** The attributes of the CloudEvents specification. All are strings. */
export const CORE_ATTRIBUTES: ReadonlySet<string> = new Set([
  'id',
  'source',
  'specversion',
  'type',
  'datacontenttype',
  'dataschema',
  'subject',
  'time',
])

const REQUIRED = ['specversion', 'id', 'source', 'type']

export function isAttributeName(name: string): boolean {
  return NAME.test(name) && name !== 'data'
}

/** @throws CeError EVENT_INVALID for a name that no attribute may have */
export function assertAttributeName(name: string): void {
  if (CORE_ATTRIBUTES.has(name) || isAttributeName(name)) return
  const shown = shownText(name)
  throw invalidEvent(`${shown} is not an attribute name; allowed are the letters a to z and digits`)
}

/** Text that every attribute may contain. Checked first because the check is fast. */
const PRINTABLE = /^[\x20-\x7e]*$/

/** Characters that CloudEvents strings must not contain: control characters and Unicode non-characters. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\p{Noncharacter_Code_Point}]/u

/**
 * Checks the context attributes: required ones are present, strings contain allowed characters only, and the formats
 * (URI reference, timestamp …) are valid by the schema of the official SDK.
 * @param valid The attributes of an event that was checked before: equal ones are not checked again
 * @throws CeError EVENT_INVALID
 */
export function assertAttributes({ texts }: Attributes, valid?: Attributes['texts']): void {
  for (const name of REQUIRED) {
    if (!texts.get(name)) throw invalidEvent(`the attribute ${name} is missing or empty`, name)
  }
  const specversion = texts.get('specversion')
  if (specversion !== '1.0') {
    throw invalidEvent(`specversion is ${shownText(specversion ?? '')}; this server reads "1.0"`, 'specversion')
  }
  for (const [name, text] of texts) {
    if (valid?.get(name) === text) continue
    const most = name === 'time' ? MAX_TIME_LENGTH : MAX_ATTRIBUTE_LENGTH
    if (text.length > most) {
      throw invalidEvent(`the attribute ${name} has ${text.length} characters; it may have ${most}`, name)
    }
    if (!PRINTABLE.test(text) && (!text.isWellFormed() || FORBIDDEN.test(text))) {
      throw invalidEvent(`the attribute ${name} contains a control character or an invalid Unicode character`, name)
    }
  }
  if (valid !== undefined && WITH_FORMAT.every((name) => texts.get(name) === valid.get(name))) return
  if (hasPlainFormats(texts)) return
  const { CloudEvent, ValidationError } = cloudEventsSdk()
  try {
    // Extensions are checked by then, and the SDK refuses some that the specification allows.
    // oxlint-disable-next-line no-new -- making one is the check
    new CloudEvent(Object.fromEntries([...texts].filter(([name]) => CORE_ATTRIBUTES.has(name))), true)
  } catch (error) {
    if (error instanceof ValidationError || error instanceof TypeError) throw schemaError(error, texts)
    throw error
  }
}

/** The attributes whose format is checked. */
const WITH_FORMAT = ['source', 'subject', 'datacontenttype', 'dataschema', 'time']

const FORMATS: Readonly<Record<string, string>> = {
  source: 'a URI or URI reference, such as /sensors/7 or urn:example:sensor:7',
  dataschema: 'an absolute URI',
  time: 'an RFC 3339 timestamp, such as 2026-01-31T09:30:00Z',
}

function schemaError(error: TypeError, texts: ReadonlyMap<string, string>): Error {
  const { ValidationError } = cloudEventsSdk()
  const first: unknown = error instanceof ValidationError && Array.isArray(error.errors) ? error.errors[0] : undefined
  const path = typeof first === 'object' && first !== null ? Reflect.get(first, 'instancePath') : undefined
  if (typeof path !== 'string' || path === '') return invalidEvent(error.message)
  const name = path.slice(1)
  const text = texts.get(name) ?? ''
  const shown = shownText(text)
  return invalidEvent(`${name} is ${shown}; it must be ${FORMATS[name] ?? 'a string that is not empty'}`, name)
}

/** The most attributes and extensions of one event. */
export const MAX_ATTRIBUTES = 256

/** The longest attribute, in characters; together they should not exceed 64 KiB (CloudEvents 5.1). */
const MAX_ATTRIBUTE_LENGTH = 8_192

/** The longest `time`, in characters. */
const MAX_TIME_LENGTH = 64

export function tooManyAttributes(): Error {
  return invalidEvent(`an event has more than ${MAX_ATTRIBUTES} attributes`)
}

/** Returns the error for an invalid CloudEvent. */
export function invalidEvent(reason: string, attribute?: string): CeError {
  return new CeError('EVENT_INVALID', `invalid CloudEvent: ${reason}`, { attribute })
}

/** Matches the usual spellings of the formats in CloudEvents. Other values may be valid too. */
const ABSOLUTE_PATH = /^\/(?:[\w.~-][\w.~/-]*)?(?:\?[\w.~!$&'()*+,;=:@/?-]*)?(?:#[\w.~!$&'()*+,;=:@/?-]*)?$/
const ABSOLUTE_URI =
  /^[a-z][a-z0-9+.-]{0,31}:(?:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?(?:\/[\w.~:/-]*)?|[\w.~:-]+)(?:\?[\w.~!$&'()*+,;=:@/?-]*)?(?:#[\w.~!$&'()*+,;=:@/?-]*)?$/
const TIMESTAMP =
  /^\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** The longest value that is checked here, in characters. */
const MAX_LENGTH = 512

/**
 * Returns `true` if all attributes with a format are valid by a simple check. The full check, which costs as much as
 * reading the rest of an event, is then not needed. `false` means unknown.
 */
export function hasPlainFormats(texts: ReadonlyMap<string, string>): boolean {
  const source = texts.get('source') ?? ''
  if (source.length > MAX_LENGTH || !(ABSOLUTE_PATH.test(source) || ABSOLUTE_URI.test(source))) return false
  if (texts.get('subject') === '' || texts.get('datacontenttype') === '') return false
  const time = texts.get('time')
  if (time !== undefined && !TIMESTAMP.test(time)) return false
  const dataschema = texts.get('dataschema')
  return dataschema === undefined || (dataschema.length <= MAX_LENGTH && ABSOLUTE_URI.test(dataschema))
}

const require = createRequire(import.meta.url)

let loaded: typeof CloudEvents | undefined

/**
 * Returns the CloudEvents SDK, loaded on the first call: a server without such events does not need its forty files.
 */
function cloudEventsSdk(): typeof CloudEvents {
  return (loaded ??= load())
}

function load(): typeof CloudEvents {
  const library: typeof CloudEvents = require('cloudevents')
  return library
}
