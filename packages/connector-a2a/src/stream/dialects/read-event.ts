import { Buffer, isUtf8 } from 'node:buffer'

import { isJsonObject, parseJson } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../reader/event-reader.ts'
import { readJsonRpc } from './json-rpc.ts'
import type { Reading } from './reading.ts'
import { readTaskEvent } from './task-events.ts'

/**
 * Bounds the depth and the number of values of an event (J4), but not its keys: many and repeated
 * keys pass unchanged (A4).
 */
const ANY_KEYS = { maxKeys: 0, uniqueKeys: false }

// Data holds one character for each byte. Clients would decode bytes that are not UTF-8 in
// different ways.
const BEYOND_ASCII = /[\u0080-\u00ff]/

/**
 * Reads an agent's event in any dialect. Undefined if its data is not JSON; `invalid` if it must
 * not be passed on.
 */
export function readEvent({ event, data }: ServerSentEvent): Reading | 'invalid' | undefined {
  if (BEYOND_ASCII.test(data) && !isUtf8(Buffer.from(data, 'latin1'))) return 'invalid'
  const json = parseJson(data, ANY_KEYS)
  if ('problem' in json) return json.exceeded === undefined ? undefined : 'invalid'
  const { value } = json
  // JSON text has line ends only between its tokens, and an event is one line.
  const text = data.includes('\n') ? data.replaceAll('\n', ' ') : data
  if (!isJsonObject(value)) return { type: 'message', payload: text }
  const source = { text, value }
  return readJsonRpc(source) ?? readTaskEvent(event, source) ?? { type: 'message', payload: text }
}

/** Reads an event that is not JSON as a message whose payload is the text. */
export function readTextEvent({ data }: ServerSentEvent): Reading {
  return { type: 'message', payload: JSON.stringify(data) }
}

/**
 * Reads an agent's plain JSON answer to `message/stream`, which is its one event. Undefined if it
 * cannot be passed on.
 */
export function readPlainAnswer(body: string): Reading | undefined {
  const reading = readEvent({ event: undefined, data: body.replaceAll('\r', ' ') })
  if (reading === undefined || reading === 'invalid') return undefined
  const { payload, type, ifEnded } = reading
  return { type: type === 'error' || ifEnded === 'error' ? 'error' : 'done', payload }
}
