import type { JsonObject } from '@signalbox/http-kit'

/** An agent's event as it was understood (A8). */
export interface Reading {
  /** The type of the client's envelope. Of `done` and `error` the first is the stream's last event. */
  readonly type: string
  /** Its source text, of a type of the agent's own: characters may be escaped in it, and are bytes in ours. */
  readonly typeText?: string
  /** The payload's source text: nothing in it was re-shaped. */
  readonly payload: string
  /**
   * What the end of the agent's response would mean right after this event (A9): the task is `done`, or ended in an
   * `error`, or is still `open`. Left out on events that say nothing of it.
   */
  readonly ifEnded?: 'done' | 'error' | 'open'
}

/** A JSON object, with its source text. */
export interface SourceObject {
  readonly text: string
  readonly value: JsonObject
}
