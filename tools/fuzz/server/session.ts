import type { HostileReply } from './hostile-agent.ts'
import type { Pieces } from '../grammar/pieces.ts'

/** A request whose head and length are correct for any content. */
export interface HttpStep {
  readonly kind: 'http'
  readonly listener: 'http' | 'api'
  readonly method: string
  /** May contain the placeholders of {@link Places}. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Pieces
  readonly encoding: 'utf8' | 'latin1'
  /** The time-out of an answer, and the time to read a stream, in milliseconds. */
  readonly patienceMs: number
  /** The agent's answer, if the request leads to the agent. */
  readonly reply: HostileReply | null
  readonly manner: Manner
}

/** The behavior of a client that sends a correct request. */
export type Manner =
  /** Writes at once, reads everything, and disconnects. */
  | 'plain'
  /** Reads nothing, and disconnects. */
  | 'stalled'
  /** Writes in two parts. */
  | 'halting'
  /** Disconnects in the middle of its request. */
  | 'aborting'
  /** Closes its side after the write. */
  | 'half-closed'

/** Raw bytes on a socket. */
export interface RawStep {
  readonly kind: 'raw'
  readonly listener: 'http' | 'api'
  readonly writes: readonly Pieces[]
  /** The delay between two writes, in milliseconds. */
  readonly pauseMs: number
  readonly end: 'finish' | 'reset' | 'wait'
  readonly patienceMs: number
}

export type Step = HttpStep | RawStep

/** Requests on separate connections, concurrent or in sequence. */
export interface Session {
  readonly parallel: boolean
  readonly steps: readonly Step[]
}

/** The values of the placeholders in inputs: addresses, and the server's latest values, which differ between runs. */
export interface Places {
  readonly http: string
  readonly api: string
  readonly agent: string
  /** A receipt of a delivery, the id of a command or query, a cursor. */
  readonly receipt: string
  readonly request: string
  readonly cursor: string
}

/** The places in an answer with values for later requests. */
const GIVEN_BACK = {
  receipt: /"receipt":"([^"\\]+)"/g,
  request: /"brokerrequestid":"([^"\\]+)"/g,
  cursor: /"next_?[cC]ursor":"([^"\\]+)"/g,
}

/** Stores the values of an answer for later requests. */
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
