import { Buffer, isUtf8 } from 'node:buffer'

import { isJsonObject, parseJson } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../reader/event-reader.ts'
import { readJsonRpc } from './json-rpc.ts'
import type { Reading } from './reading.ts'
import { readTaskEvent } from './task-events.ts'

/** What an agent says is bounded in depth and in values (J4); its keys may be many, and be repeated: they come through (A4). */
const ANY_KEYS = { maxKeys: 0, uniqueKeys: false }

// Data holds a character for each byte; clients would each read something else for bytes that are not UTF-8.
const BEYOND_ASCII = /[\u0080-\u00ff]/

/** What the agent's event says, in whichever dialect; undefined when its data is not JSON, `invalid` when it is nothing to pass on. */
export function readEvent({ event, data }: ServerSentEvent): Reading | 'invalid' | undefined {
  if (BEYOND_ASCII.test(data) && !isUtf8(Buffer.from(data, 'latin1'))) return 'invalid'
  const json = parseJson(data, ANY_KEYS)
  if ('problem' in json) return json.exceeded === undefined ? undefined : 'invalid'
  const { value } = json
  // Line ends stand only between the parts of JSON text, and an event is one line.
  const text = data.includes('\n') ? data.replaceAll('\n', ' ') : data
  if (!isJsonObject(value)) return { type: 'message', payload: text }
  const source = { text, value }
  return readJsonRpc(source) ?? readTaskEvent(event, source) ?? { type: 'message', payload: text }
}

/** The text of an event that is not JSON, for clients: a message whose payload is the text. */
export function readTextEvent({ data }: ServerSentEvent): Reading {
  return { type: 'message', payload: JSON.stringify(data) }
}

/** An agent's plain JSON answer to `message/stream`: its one event (A9). Undefined when that cannot be passed on. */
export function readPlainAnswer(body: string): Reading | undefined {
  const reading = readEvent({ event: undefined, data: body.replaceAll('\r', ' ') })
  if (reading === undefined || reading === 'invalid') return undefined
  const { payload, type, ifEnded } = reading
  return { type: type === 'error' || ifEnded === 'error' ? 'error' : 'done', payload }
}
