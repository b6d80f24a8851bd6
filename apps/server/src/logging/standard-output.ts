import process from 'node:process'

import type { DestinationStream } from 'pino'
import pino from 'pino'

/** The time that lines wait to be written together, in ms, and the most characters that wait. */
const WAIT_MS = 10
const MAX_WAITING = 65_536

/**
 * The most bytes that are kept while writing is impossible, for example on a full disk. Further
 * lines are dropped.
 */
const MAX_KEPT = 4_194_304

/** A stream that pino flushes after a `fatal` line. */
export interface FlushedStream extends DestinationStream {
  flushSync(): void
}

/**
 * Standard output for the log. Lines of {@link WAIT_MS} are written together: a write is a system
 * call that takes longer than the rest of a line, and it wakes the reader. No line is lost at an
 * exit, including a crash; killing the process loses the waiting lines. A `fatal` line is written
 * at once, with those before it.
 */
export class StandardOutput implements FlushedStream {
  readonly #destination = pino.destination({ fd: 1, sync: true, maxLength: MAX_KEPT })
  #waiting = ''
  #timer: NodeJS.Timeout | undefined

  constructor() {
    // If the reader of the log disappears, the server continues to serve and to shut down in order.
    this.#destination.on('error', () => {})
    process.on('exit', () => this.flushSync())
  }

  write(lines: string): void {
    this.#waiting += lines
    if (this.#waiting.length > MAX_WAITING) this.flushSync()
    else this.#timer ??= setTimeout(() => this.flushSync(), WAIT_MS).unref()
  }

  /** Writes the waiting lines. */
  flushSync(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#waiting
    this.#waiting = ''
    if (lines !== '') this.#destination.write(lines)
  }
}

let output: StandardOutput | undefined

/** Returns the one instance of the process, so that lines of different loggers keep their order. */
export function standardOutput(): StandardOutput {
  return (output ??= new StandardOutput())
}
