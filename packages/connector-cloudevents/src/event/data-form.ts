import { Buffer, isUtf8 } from 'node:buffer'

import type { Steps } from '@signalbox/http-kit'
import {
  allSteps,
  checkJson,
  LONG_TEXT_BYTES,
  LongBytes,
  MAX_JSON_DEPTH,
  onOneLine,
  TextParts,
} from '@signalbox/http-kit/internal'

/** The member of an event's JSON form that contains the body, and its type. `none` is an event without data. */
export type DataForm = 'none' | 'json' | 'text' | 'base64'

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json[\t ]*(?:;|$)/i
/** Matches a type whose data is bytes, even if the data is valid UTF-8. */
const BYTES_TYPE = /^application\/octet-stream[\t ]*(?:;|$)/i
const OTHER_CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?(?!"|utf-?8"?[\t ]*(?:;|$))/i

/** A longer content type is unknown, in characters. */
const MAX_CONTENT_TYPE = 256

/** Returns `true` if the type of the content is JSON. Content without a type is JSON (CloudEvents JSON format 3.1). */
export function isJsonType(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined) return true
  return datacontenttype.length <= MAX_CONTENT_TYPE && JSON_TYPE.test(datacontenttype)
}

/** Returns `true` if the content is text in case it is valid UTF-8. */
function mayBeText(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined || datacontenttype.length > MAX_CONTENT_TYPE) return false
  return !BYTES_TYPE.test(datacontenttype) && !OTHER_CHARSET.test(datacontenttype)
}

/**
 * Returns `true` if the form of the data must be stored with it, because {@link dataMember} would choose another
 * form. Does not parse: the result is `true` for JSON in base64 too, which is rare.
 */
export function isUnusualForm(form: DataForm, body: Uint8Array, datacontenttype: string | undefined): boolean {
  if (form === 'none' || form === 'json') return false
  if (body.byteLength === 0) return true
  if (form === 'text') return !mayBeText(datacontenttype)
  return isJsonType(datacontenttype) || (mayBeText(datacontenttype) && isUtf8(body))
}

/**
 * Returns the member that contains a body in the JSON form of an event; empty without data. A stored form is used if
 * the body fits it. Otherwise valid JSON with a JSON type is JSON, UTF-8 is a string unless its type is JSON or
 * bytes, and any other body is base64, which loses nothing.
 */
export function dataMember(
  body: Uint8Array,
  form: DataForm | undefined,
  datacontenttype: string | undefined,
): string | TextParts {
  if (form === 'base64') return base64Member(body)
  if (body.byteLength === 0) return form === 'text' ? '"data":""' : ''
  const hasJsonType = form !== 'text' && isJsonType(datacontenttype)
  if (!hasJsonType && (form === 'text' || mayBeText(datacontenttype))) {
    return isUtf8(body) ? textMember(body) : base64Member(body)
  }
  return hasJsonType ? lazily(body, jsonOrBase64) : base64Member(body)
}

/** Returns the members that contain the body of a message that is no event: JSON, text with its type, or base64. */
export function bodyMembers(body: Uint8Array): string | TextParts {
  return body.byteLength === 0 ? '' : lazily(body, membersOf)
}

/** Makes the members of a long body when they are written: to read it as JSON takes long. */
function lazily(body: Uint8Array, make: (body: Uint8Array) => Steps<string | TextParts>): string | TextParts {
  if (body.byteLength < LONG_TEXT_BYTES) return allSteps(make(body))
  return TextParts.later(body.byteLength, function* () {
    return new TextParts().add(yield* make(body))
  })
}

function* jsonOrBase64(body: Uint8Array): Steps<string | TextParts> {
  return (yield* bodyKind(body)) === 'json' ? yield* jsonMember(body) : base64Member(body)
}

function* membersOf(body: Uint8Array): Steps<string | TextParts> {
  const kind = yield* bodyKind(body)
  if (kind === 'json') return yield* jsonMember(body)
  if (kind !== 'text') return base64Member(body)
  const type = '"datacontenttype":"text/plain",'
  const data = textMember(body)
  return typeof data === 'string' ? type + data : new TextParts().add(type).add(data)
}

/** The event adds one level around its data. */
const LIMITS = { maxDepth: MAX_JSON_DEPTH - 1, maxKeys: 0 }

/**
 * Returns the kind of a body: JSON, other text, or bytes. JSON that is nested too deep or has too many parts counts as
 * bytes: readers would reject it.
 */
export function* bodyKind(body: Uint8Array): Steps<'json' | 'text' | 'bytes'> {
  if (!isUtf8(body)) return 'bytes'
  const json = yield* checkJson(body, LIMITS)
  if ('members' in json) return 'json'
  return json.exceeded === undefined ? 'text' : 'bytes'
}

/** @param body JSON in UTF-8 */
function* jsonMember(body: Uint8Array): Steps<string | TextParts> {
  // Line ends in JSON text only separate its parts, so a space can replace them.
  if (body.byteLength < LONG_TEXT_BYTES)
    return `"data":${bufferOf(body)
      .toString()
      .replace(/[\r\n]/g, ' ')}`
  return new TextParts().add('"data":').add(yield* onOneLine(body))
}

/** @param body UTF-8 */
function textMember(body: Uint8Array): string | TextParts {
  if (body.byteLength >= LONG_TEXT_BYTES) return new TextParts().add('"data":').add(TextParts.json(new LongBytes(body)))
  return `"data":${JSON.stringify(bufferOf(body).toString())}`
}

function base64Member(body: Uint8Array): string | TextParts {
  if (body.byteLength >= LONG_TEXT_BYTES) return new TextParts().add('"data_base64":"').addBase64(body).add('"')
  return `"data_base64":"${bufferOf(body).toString('base64')}"`
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
