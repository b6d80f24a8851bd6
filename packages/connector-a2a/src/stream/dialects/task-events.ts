import { memberText } from '@signalbox/http-kit'

import { ENVELOPE_TYPES } from '../events.ts'
import type { Reading, SourceObject } from './reading.ts'

const KNOWN: ReadonlySet<string> = new Set([...ENVELOPE_TYPES.values(), 'message'])

/**
 * Reads events that have the client's names: `event:
 * task.status|task.artifact|task.done|task.error`, with data `{type, payload}`. If name and type
 * differ, the name decides, because clients go by it. Data without a payload member is the payload
 * itself. Without such a name, data needs a type and a payload.
 */
export function readTaskEvent(event: string | undefined, { text, value }: SourceObject): Reading | undefined {
  const { type } = value
  const named = event === undefined ? undefined : ENVELOPE_TYPES.get(event)
  const payload = Object.hasOwn(value, 'payload') ? memberText(text, 'payload') : undefined
  if (named !== undefined) return reading(named, payload ?? text)
  if (typeof type !== 'string' || payload === undefined) return undefined
  return KNOWN.has(type) ? reading(type, payload) : { type, payload, typeText: memberText(text, 'type') ?? '""' }
}

function reading(type: string, payload: string): Reading {
  if (type === 'message') return { type, payload, ifEnded: 'done' }
  return type === 'status_update' ? { type, payload, ifEnded: 'open' } : { type, payload }
}
