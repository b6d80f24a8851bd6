import { Buffer, isUtf8 } from 'node:buffer'

import { parseJson } from '@signalbox/http-kit'

/**
 * Bounds the depth and the number of values of an event (J4), but not its keys: many and repeated
 * keys pass unchanged (A4).
 */
const ANY_KEYS = { maxKeys: 0, uniqueKeys: false }

// Data holds one character for each byte. Clients would decode bytes that are not UTF-8 in
// different ways.
const BEYOND_ASCII = /[\u0080-\u00ff]/

/**
 * Parses the data of an event. The text is the data on one line. Undefined if the data is not JSON;
 * `invalid` if it must not be passed on.
 */
export function parseData(data: string): { readonly text: string; readonly value: unknown } | 'invalid' | undefined {
  if (BEYOND_ASCII.test(data) && !isUtf8(Buffer.from(data, 'latin1'))) return 'invalid'
  const json = parseJson(data, ANY_KEYS)
  if ('problem' in json) return json.exceeded === undefined ? undefined : 'invalid'
  // JSON text has line ends only between its tokens, and an event is one line.
  return { text: data.includes('\n') ? data.replaceAll('\n', ' ') : data, value: json.value }
}
