import type { HostileReply } from './hostile-agent.ts'
import type { Pieces } from '../grammar/pieces.ts'

/** A request with a head and a length that fit, whatever they say. */
export interface HttpStep {
  readonly kind: 'http'
  readonly listener: 'http' | 'api'
  readonly method: string
  /** May hold the placeholders of {@link Places}. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Pieces
  readonly encoding: 'utf8' | 'latin1'
  /** How long an answer is waited for, and a stream read, in milliseconds. */
  readonly patienceMs: number
  /** What the agent answers with, when the request leads to it. */
  readonly reply: HostileReply | null
  readonly manner: Manner
}

/** How a client behaves that sends a right request. */
export type Manner =
  /** Writes at once, reads all, and goes. */
  | 'plain'
  /** Reads nothing, and breaks off. */
  | 'stalled'
  /** Writes in two parts. */
  | 'halting'
  /** Breaks off in the middle of its request. */
  | 'aborting'
  /** Closes its side once it has written. */
  | 'half-closed'

/** Bytes on a socket. */
export interface RawStep {
  readonly kind: 'raw'
  readonly listener: 'http' | 'api'
  readonly writes: readonly Pieces[]
  /** Milliseconds between two writes. */
  readonly pauseMs: number
  readonly end: 'finish' | 'reset' | 'wait'
  readonly patienceMs: number
}

export type Step = HttpStep | RawStep

/** What happens on connections of their own, all at once or one after the other. */
export interface Session {
  readonly parallel: boolean
  readonly steps: readonly Step[]
}

/** What placeholders in inputs stand for: addresses, and what the server said last, differ from run to run. */
export interface Places {
  readonly http: string
  readonly api: string
  readonly agent: string
  /** A receipt of a delivery, the id of a command or query, a cursor. */
  readonly receipt: string
  readonly request: string
  readonly cursor: string
}

/** Where an answer has what a later request may give back. */
const GIVEN_BACK = {
  receipt: /"receipt":"([^"\\]+)"/g,
  request: /"brokerrequestid":"([^"\\]+)"/g,
  cursor: /"next_?[cC]ursor":"([^"\\]+)"/g,
}

/** Remembers what an answer holds for later requests. */
export function learned(places: Places, answer: string): Places {
  const last = (pattern: RegExp, before: string): string => Array.from(answer.matchAll(pattern)).at(-1)?.[1] ?? before
  return {
    ...places,
    receipt: last(GIVEN_BACK.receipt, places.receipt),
    request: last(GIVEN_BACK.request, places.request),
    cursor: last(GIVEN_BACK.cursor, places.cursor),
  }
}

/** Fills in `{{agent}}`, `{{receipt}}` and the like. */
export function filled(text: string, places: Places, replyKey: string): string {
  if (!text.includes('{{')) return text
  return text.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, name: string) => {
    if (name === 'reply') return `reply-key-${replyKey}`
    const value: unknown = Reflect.get(places, name)
    return typeof value === 'string' ? value : placeholder
  })
}
