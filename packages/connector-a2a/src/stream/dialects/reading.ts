import type { JsonObject } from '@signalbox/http-kit'

/** An agent's event after it was read in its dialect. */
export interface Reading {
  /** The type of the client's envelope. The first `done` or `error` is the stream's last event. */
  readonly type: string
  /**
   * The source text of a type that only the agent defines. It may contain escapes, and `type` holds
   * bytes.
   */
  readonly typeText?: string
  /** The payload's source text, unchanged. */
  readonly payload: string
  /**
   * The terminal event to send if the agent's response ends right after this event: the task is
   * `done`, ended in an `error`, or is still `open`. Absent on events that do not change the
   * answer.
   */
  readonly ifEnded?: 'done' | 'error' | 'open'
}

/** A JSON object, with its source text. */
export interface SourceObject {
  readonly text: string
  readonly value: JsonObject
}
