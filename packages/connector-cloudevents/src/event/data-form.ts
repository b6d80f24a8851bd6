import { Buffer, isUtf8 } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { MAX_JSON_DEPTH, MAX_JSON_PARTS, readJson, scanJson } from '@signalbox/http-kit'

/** In which member, and how, a body stands in the JSON form of an event; `none` is an event without data. */
export type DataForm = 'none' | 'json' | 'text' | 'base64'

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json[\t ]*(?:;|$)/i
/** Bytes by their type, whatever they happen to be. */
const BYTES_TYPE = /^application\/octet-stream[\t ]*(?:;|$)/i
const OTHER_CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?(?!"|utf-?8"?[\t ]*(?:;|$))/i

/** A longer content type is none that we know, in characters. */
const MAX_CONTENT_TYPE = 256

/** Whether the content is JSON by its type; without one it is (CloudEvents JSON format 3.1). */
export function isJsonType(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined) return true
  return datacontenttype.length <= MAX_CONTENT_TYPE && JSON_TYPE.test(datacontenttype)
}

/** Whether the content may be text by its type: it is if it is UTF-8. */
function mayBeText(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined || datacontenttype.length > MAX_CONTENT_TYPE) return false
  return !BYTES_TYPE.test(datacontenttype) && !OTHER_CHARSET.test(datacontenttype)
}

/**
 * Tells whether the form in which data came must be kept with it, because {@link dataMember} would choose another one.
 * Parses nothing: it says so of JSON in base64 too, which is rare.
 */
export function isUnusualForm(form: DataForm, body: Uint8Array, datacontenttype: string | undefined): boolean {
  if (form === 'none' || form === 'json') return false
  if (body.byteLength === 0) return true
  if (form === 'text') return !mayBeText(datacontenttype)
  return isJsonType(datacontenttype) || (mayBeText(datacontenttype) && isUtf8(body))
}

/**
 * The member that holds a body in the JSON form of an event; empty where there is no data. A form that was said holds as
 * far as the body bears it out. Otherwise JSON by its type and in fact is JSON, UTF-8 is a string unless its type says
 * that it is JSON or mere bytes, and anything else is base64, which loses nothing.
 */
export function dataMember(body: Uint8Array, form: DataForm | undefined, datacontenttype: string | undefined): string {
  if (form === 'base64') return base64Member(body)
  if (body.byteLength === 0) return form === 'text' ? '"data":""' : ''
  const isJson = form !== 'text' && isJsonType(datacontenttype)
  const text = isJson || form === 'text' || mayBeText(datacontenttype) ? decodeText(body) : undefined
  if (text === undefined || (isJson && kindOf(text) !== 'json')) return base64Member(body)
  return isJson ? jsonMember(text) : textMember(text)
}

/** The members that hold the body of a message that is no event: JSON, or text with its type, or base64. */
export function bodyMembers(body: Uint8Array): readonly string[] {
  if (body.byteLength === 0) return []
  const text = decodeText(body)
  const kind = text === undefined ? 'too large' : kindOf(text)
  if (text === undefined || kind === 'too large') return [base64Member(body)]
  return kind === 'json' ? [jsonMember(text)] : ['"datacontenttype":"text/plain"', textMember(text)]
}

/** An event is a level around its data. */
const LIMITS = { maxDepth: MAX_JSON_DEPTH - 1, maxKeys: 0, maxParts: MAX_JSON_PARTS }
const NO_MEMBERS = { member(): void {} }

/** What a text is. What is nested too deep, or has too many parts, is not parsed: it would take seconds, and no reader would take it. */
function kindOf(text: string): 'json' | 'too large' | 'other' {
  if (scanJson(text, LIMITS, NO_MEMBERS).exceeded !== undefined) return 'too large'
  return readJson(text) === undefined ? 'other' : 'json'
}

function jsonMember(text: string): string {
  // A line end can only stand between the parts of JSON text, where a blank does as well.
  return `"data":${text.replace(/[\r\n]+/g, ' ')}`
}

function textMember(text: string): string {
  return `"data":${JSON.stringify(text)}`
}

function base64Member(body: Uint8Array): string {
  return `"data_base64":"${Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')}"`
}
