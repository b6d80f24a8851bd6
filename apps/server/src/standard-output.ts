import process from 'node:process'

import type { DestinationStream } from 'pino'
import pino from 'pino'

/** The most characters that wait for the end of a turn. */
const MAX_WAITING = 65_536

/** The most bytes that are kept while nothing can be written, on a full disk, say. What comes beyond them is dropped. */
const MAX_KEPT = 4_194_304

/** Pino flushes such a stream after a `fatal` line. */
export interface FlushedStream extends DestinationStream {
  flushSync(): void
}

/**
 * Standard output, for the log. What is logged in one turn of the event loop is written at its end, all at once: a write
 * is a system call that takes longer than all the rest of a line. Nothing is lost at an exit, a crash included; whoever
 * kills the process loses the lines of a turn. A `fatal` line is written at once, with those before it.
 */
export class StandardOutput implements FlushedStream {
  readonly #destination = pino.destination({ fd: 1, sync: true, maxLength: MAX_KEPT })
  #waiting = ''
  #turn: NodeJS.Immediate | undefined

  constructor() {
    // A reader of the log that went away is no reason to stop serving, or not to shut down in order.
    this.#destination.on('error', () => {})
    process.on('exit', () => this.flushSync())
  }

  write(lines: string): void {
    this.#waiting += lines
    if (this.#waiting.length > MAX_WAITING) this.flushSync()
    else this.#turn ??= setImmediate(() => this.flushSync())
  }

  /** Writes what waits. */
  flushSync(): void {
    clearImmediate(this.#turn)
    this.#turn = undefined
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
