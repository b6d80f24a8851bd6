import { isJsonObject } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../reader/event-reader.ts'
import { parseData } from './event-data.ts'
import { readJsonRpc } from './json-rpc.ts'
import type { Reading } from './reading.ts'
import { readTaskEvent } from './task-events.ts'

/**
 * Reads an agent's event in any dialect. Undefined if its data is not JSON; `invalid` if it must
 * not be passed on.
 */
export function readEvent({ event, data }: ServerSentEvent): Reading | 'invalid' | undefined {
  const source = parseData(data)
  if (source === undefined || source === 'invalid') return source
  const { text, value } = source
  if (!isJsonObject(value)) return { type: 'message', payload: text }
  const object = { text, value }
  return readJsonRpc(object) ?? readTaskEvent(event, object) ?? { type: 'message', payload: text }
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
