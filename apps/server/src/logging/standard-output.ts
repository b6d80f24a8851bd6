import process from 'node:process'

import type { DestinationStream } from 'pino'
import pino from 'pino'

/** How long lines wait for others, in milliseconds, and the most characters that do. */
const WAIT_MS = 10
const MAX_WAITING = 65_536

/** The most bytes that are kept while nothing can be written, on a full disk, say. What comes beyond them is dropped. */
const MAX_KEPT = 4_194_304

/** Pino flushes such a stream after a `fatal` line. */
export interface FlushedStream extends DestinationStream {
  flushSync(): void
}

/**
 * Standard output, for the log. What is logged within {@link WAIT_MS} is written all at once: a write is a system call that
 * takes longer than all the rest of a line, and wakes whoever reads. Nothing is lost at an exit, a crash included; whoever
 * kills the process loses the lines that wait. A `fatal` line is written at once, with those before it.
 */
export class StandardOutput implements FlushedStream {
  readonly #destination = pino.destination({ fd: 1, sync: true, maxLength: MAX_KEPT })
  #waiting = ''
  #timer: NodeJS.Timeout | undefined

  constructor() {
    // A reader of the log that went away is no reason to stop serving, or not to shut down in order.
    this.#destination.on('error', () => {})
    process.on('exit', () => this.flushSync())
  }

  write(lines: string): void {
    this.#waiting += lines
    if (this.#waiting.length > MAX_WAITING) this.flushSync()
    else this.#timer ??= setTimeout(() => this.flushSync(), WAIT_MS).unref()
  }

  /** Writes what waits. */
  flushSync(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#waiting
    this.#waiting = ''
    if (lines !== '') this.#destination.write(lines)
  }
}

let output: StandardOutput | undefined

/** The one for the process: lines of different loggers keep their order. */
export function standardOutput(): StandardOutput {
  return (output ??= new StandardOutput())
}
