import { format } from 'node:util'

import type { Logger } from 'pino'
import pino from 'pino'

import type { Config } from '../config/schema.ts'
import type { FlushedStream } from './standard-output.ts'
import { standardOutput } from './standard-output.ts'

export type { Logger }

/** The paths at which log entries could contain secrets. */
const REDACTED = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'token',
  '*.authorization',
  '*.cookie',
  '*.password',
  '*.secret',
  '*.token',
  '*.headers.authorization',
  '*.headers.cookie',
  '*.headers["proxy-authorization"]',
]

let timeAt = 0
let timeText = ''

/**
 * Returns the time of a line, in ISO 8601. Formatting it takes longer than the rest of the line,
 * and many lines have the same time.
 */
function isoTime(): string {
  const now = Date.now()
  if (now !== timeAt) {
    timeAt = now
    timeText = `,"time":"${new Date(now).toISOString()}"`
  }
  return timeText
}

/** The options that all loggers share. */
export const LOG_FORM = {
  base: null,
  timestamp: isoTime,
  formatters: { level: (level: string) => ({ level }) },
  redact: { paths: REDACTED, censor: '[redacted]' },
}

/** Creates the server's log on stdout: JSON lines, or lines for people. */
export async function createLogger({ level, format }: Config['log']): Promise<Logger> {
  const options = { ...LOG_FORM, level }
  if (format === 'json') return pino(options, standardOutput())
  const { prettyFactory } = await import('pino-pretty')
  const pretty = prettyFactory({ ignore: 'pid,hostname' })
  const output = standardOutput()
  const people: FlushedStream = { write: (line) => output.write(pretty(line)), flushSync: () => output.flushSync() }
  return pino(options, people)
}

/**
 * Creates the logger for the few lines that programs wait for: always JSON, regardless of the
 * settings, and written at once.
 */
export function createAnnouncer(): Logger {
  const output = standardOutput()
  const announcements: FlushedStream = {
    write(line) {
      output.write(line)
      output.flushSync()
    },
    flushSync: () => output.flushSync(),
  }
  return pino({ ...LOG_FORM, level: 'trace' }, announcements)
}

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
