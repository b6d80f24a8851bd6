import { isJsonObject, readJson } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../reader/event-reader.ts'
import { readJsonRpc } from './json-rpc.ts'
import type { Reading } from './reading.ts'
import { readTaskEvent } from './task-events.ts'

/** What the agent's event says, in whichever dialect; undefined when its data is not JSON. */
export function readEvent({ event, data }: ServerSentEvent): Reading | undefined {
  const json = readJson(data)
  if (json === undefined) return undefined
  const { value } = json
  // Line ends stand only between the parts of JSON text, and an event is one line.
  const text = data.includes('\n') ? data.replaceAll('\n', ' ') : data
  if (!isJsonObject(value)) return { type: 'message', payload: text }
  const source = { text, value }
  return readJsonRpc(source) ?? readTaskEvent(event, source) ?? { type: 'message', payload: text }
}

/** The text of an event that is not JSON, for clients: a message whose payload is the text. */
export function readText({ data }: ServerSentEvent): Reading {
  return { type: 'message', payload: JSON.stringify(data) }
}

/** An agent's plain JSON answer to `message/stream`: its one event (A9). Undefined when it is not JSON. */
export function readPlainAnswer(body: string): Reading | undefined {
  const reading = readEvent({ event: undefined, data: body.replaceAll('\r', ' ') })
  if (reading === undefined) return undefined
  const { payload, type, ifEnded } = reading
  return { type: type === 'error' || ifEnded === 'error' ? 'error' : 'done', payload }
}
