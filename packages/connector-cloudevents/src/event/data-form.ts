import { Buffer, isUtf8 } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { MAX_JSON_DEPTH, readJson, scanJson } from '@signalbox/http-kit'

/** In which member, and how, a body stands in the JSON form of an event; `none` is an event without data. */
export type DataForm = 'none' | 'json' | 'text' | 'base64'

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json[\t ]*(?:;|$)/i
const TEXT_TYPE = /^text\//i
const OTHER_CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?(?!"|utf-?8"?[\t ]*(?:;|$))/i

/** A longer content type is none that we know, in characters. */
const MAX_CONTENT_TYPE = 256

/** Whether the content is JSON by its type; without one it is (CloudEvents JSON format 3.1). */
export function isJsonType(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined) return true
  return datacontenttype.length <= MAX_CONTENT_TYPE && JSON_TYPE.test(datacontenttype)
}

function isTextType(datacontenttype: string | undefined): boolean {
  if (datacontenttype === undefined || datacontenttype.length > MAX_CONTENT_TYPE) return false
  return TEXT_TYPE.test(datacontenttype) && !OTHER_CHARSET.test(datacontenttype)
}

/**
 * Tells whether the form in which data came must be kept with it, because {@link dataMember} would choose another one.
 * Parses nothing: it says so of JSON in base64 too, which is rare.
 */
export function isUnusualForm(form: DataForm, body: Uint8Array, datacontenttype: string | undefined): boolean {
  if (form === 'none' || form === 'json') return false
  if (body.byteLength === 0) return true
  if (form === 'text') return !isTextType(datacontenttype)
  return isJsonType(datacontenttype) || (isTextType(datacontenttype) && isUtf8(body))
}

/**
 * The member that holds a body in the JSON form of an event; empty where there is no data. A form that was said holds as
 * far as the body bears it out. Otherwise JSON by its type and in fact is JSON, text by its type and in fact is a string,
 * and anything else is base64, which loses nothing.
 */
export function dataMember(body: Uint8Array, form: DataForm | undefined, datacontenttype: string | undefined): string {
  if (form === 'base64') return base64Member(body)
  if (body.byteLength === 0) return form === 'text' ? '"data":""' : ''
  if (form !== 'text' && isJsonType(datacontenttype)) {
    const json = jsonText(body)
    // A line end can only stand between the parts of JSON text, where a blank does as well.
    return json === undefined ? base64Member(body) : `"data":${json.replace(/[\r\n]+/g, ' ')}`
  }
  const text = form === 'text' || isTextType(datacontenttype) ? decodeText(body) : undefined
  return text === undefined ? base64Member(body) : `"data":${JSON.stringify(text)}`
}

/** An event is a level around its data. */
const LIMITS = { maxDepth: MAX_JSON_DEPTH - 1, maxKeys: 0 }
const NO_MEMBERS = { member(): void {} }

/** The text of a body that is JSON within the limit of depth, otherwise undefined. */
function jsonText(body: Uint8Array): string | undefined {
  const text = decodeText(body)
  if (text === undefined || scanJson(text, LIMITS, NO_MEMBERS).exceeded !== undefined) return undefined
  return readJson(text) === undefined ? undefined : text
}

function base64Member(body: Uint8Array): string {
  return `"data_base64":"${Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')}"`
}
