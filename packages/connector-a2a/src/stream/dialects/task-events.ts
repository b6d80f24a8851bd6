import { memberText } from '@signalbox/http-kit'

import { ENVELOPE_TYPES } from '../events.ts'
import type { Reading, SourceObject } from './reading.ts'

const KNOWN: ReadonlySet<string> = new Set([...ENVELOPE_TYPES.values(), 'message'])

/**
 * Events that are named as the client's are: `event: task.status|task.artifact|task.done|task.error`, with data
 * `{type, payload}`. The name decides where the two disagree, as it is what readers go by. Data under such a name that
 * has no payload member is the payload itself; data of any type with a payload is read without a name too.
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
