import { Buffer } from 'node:buffer'

/** The number of events that are kept for each stream. */
const KEPT = 20

/** The start of an event that is kept, in bytes: its name, and in JSON the first member of its result. */
const HEAD_BYTES = 256

/** The size of a text, in bytes, above which it is one event: small events are joined up to this size. */
const LARGE_BYTES = 65_536
const EVENT_END = '\n\n'
const NOTHING = new Uint8Array(0)

/** An event of a stream that was written to its client. */
export interface StreamEvent {
  /** In ms since the epoch. */
  readonly at: number
  /** Such as `status update`, `artifact update`, `message`, `task` or `error`. */
  readonly event: string
  /** The size of the event. */
  readonly detail: string
}

interface Entry {
  readonly head: string
  readonly bytes: number
  /** On the clock of `performance.now()`. */
  readonly at: number
}

/**
 * The last events of a stream, for operators. The events of every stream pass here, and few are ever looked at: so the
 * names are read when they are asked for.
 */
export class RecentEvents {
  #entries: Entry[] = []

  /**
   * Adds the events of a text that was written: one, or some small ones.
   * @param text The text, or the parts of one event
   * @param at The time, on the clock of `performance.now()`
   */
  add(text: Uint8Array | readonly Uint8Array[], at: number): void {
    if (text instanceof Uint8Array) this.#addText(text, at)
    else {
      const [head = NOTHING] = text
      const bytes = text.reduce((sum, part) => sum + part.length, 0)
      this.#entries.push({ head: Buffer.from(head.subarray(0, HEAD_BYTES)).toString('latin1'), bytes, at })
    }
    // Not at each event: removing the first of an array moves the others.
    if (this.#entries.length >= 2 * KEPT) this.#entries = this.#entries.slice(-KEPT)
  }

  #addText(text: Uint8Array, at: number): void {
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.length)
    const found: Entry[] = []
    // From the end, because only the last are kept.
    for (let end = bytes.length; end > 0 && found.length < KEPT;) {
      const start = startOfLast(bytes, end)
      found.unshift({
        head: bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES)),
        bytes: end - start,
        at,
      })
      end = start
    }
    this.#entries.push(...found)
  }

  /** Returns the events, oldest first; at most 20. */
  list(): readonly StreamEvent[] {
    const begin = Date.now() - performance.now()
    return this.#entries
      .slice(-KEPT)
      .map(({ head, bytes, at }) => ({ at: Math.round(begin + at), event: nameOf(head), detail: `${bytes} bytes` }))
  }
}

/** Returns where the last event before `end` begins: after the empty line that ends the one before. */
function startOfLast(bytes: Buffer, end: number): number {
  // A large text is one event.
  if (end < EVENT_END.length + 1 || bytes.length > LARGE_BYTES) return 0
  const before = bytes.lastIndexOf(EVENT_END, end - EVENT_END.length - 1)
  return before === -1 ? 0 : before + EVENT_END.length
}

/**
 * Patterns for the start of an event, with its name; the first that matches decides. Those of the gateway's own events
 * are first, then A2A 1.0, then 0.3.
 */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^event: task\.status\n/, 'status update'],
  [/^event: task\.artifact\n/, 'artifact update'],
  [/^event: task\.done\n/, 'done'],
  [/^event: task\.error\n/, 'error'],
  [/(?:^data: |"id":[^{]{1,80})\{?"error":/, 'error'],
  [/(?:^data: |"result":)\{"statusUpdate":/, 'status update'],
  [/(?:^data: |"result":)\{"artifactUpdate":/, 'artifact update'],
  [/(?:^data: |"result":)\{"task":/, 'task'],
  [/(?:^data: |"result":)\{"message":/, 'message'],
  [/"kind":"status-update"/, 'status update'],
  [/"kind":"artifact-update"|"artifact":\{/, 'artifact update'],
  [/"kind":"task"/, 'task'],
  [/"status":\{/, 'status update'],
  [/^event: message\n|"kind":"message"/, 'message'],
  [/^:/, 'end'],
]

/** Returns the name of an event in any form that streams have. */
function nameOf(head: string): string {
  return SIGNS.find(([sign]) => sign.test(head))?.[1] ?? 'event'
}
