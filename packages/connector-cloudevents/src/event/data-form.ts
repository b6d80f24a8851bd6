import { decodeText } from '@signalbox/broker-core'

/** In which member, and how, a body stands in the JSON form of an event; `none` is an event without data. */
export type DataForm = 'none' | 'json' | 'text' | 'base64'

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json[\t ]*(?:;|$)/i
const TEXT_TYPE = /^text\//i
const OTHER_CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?(?!"|utf-?8"?[\t ]*(?:;|$))/i

/** Whether the content is JSON by its type; without one it is (CloudEvents JSON format 3.1). */
export function isJsonType(datacontenttype: string | undefined): boolean {
  return datacontenttype === undefined || JSON_TYPE.test(datacontenttype)
}

function isTextType(datacontenttype: string): boolean {
  return TEXT_TYPE.test(datacontenttype) && !OTHER_CHARSET.test(datacontenttype)
}

/**
 * The form that a body takes by itself: JSON by its type and in fact is `json`, text by its type and in fact is `text`,
 * anything else `base64`, which loses nothing.
 */
export function naturalForm(body: Uint8Array, datacontenttype: string | undefined): DataForm {
  if (body.byteLength === 0) return 'none'
  if (isJsonType(datacontenttype)) return jsonText(body) === undefined ? 'base64' : 'json'
  if (datacontenttype !== undefined && isTextType(datacontenttype) && decodeText(body) !== undefined) return 'text'
  return 'base64'
}

/** The text of a body that is JSON, otherwise undefined. */
export function jsonText(body: Uint8Array): string | undefined {
  const text = decodeText(body)
  if (text === undefined) return undefined
  try {
    JSON.parse(text)
    return text
  } catch {
    return undefined
  }
}
