import { format } from 'node:util'

import type { Logger } from './logger.ts'

/** The most characters of one write that are logged. */
const MAX_TEXT = 4_096

/**
 * Redirects console output of libraries to the log. Some libraries have no logger, and a line that
 * is not JSON breaks programs that read the log.
 */
export function logLibraryOutput(log: Logger): void {
  const write = (...parts: unknown[]): void => {
    log.warn({ text: format(...parts).slice(0, MAX_TEXT) }, 'a library wrote to the console')
  }
  for (const method of ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const) console[method] = write
}
