import type { Logger } from 'pino'
import pino from 'pino'

import type { Config } from '../config/schema.ts'
import type { FlushedStream } from './standard-output.ts'
import { standardOutput } from './standard-output.ts'

export type { Logger }

/** Where secrets could turn up in what is logged. */
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

/** The time of a line, in ISO 8601. To write one out takes longer than the rest of the line, and many have the same. */
function isoTime(): string {
  const now = Date.now()
  if (now !== timeAt) {
    timeAt = now
    timeText = `,"time":"${new Date(now).toISOString()}"`
  }
  return timeText
}

/** What every line of the log has in common. */
export const LOG_FORM = {
  base: null,
  timestamp: isoTime,
  formatters: { level: (level: string) => ({ level }) },
  redact: { paths: REDACTED, censor: '[redacted]' },
}

/** The server's log: one JSON line each on stdout, or lines for people. */
export async function createLogger({ level, format }: Config['log']): Promise<Logger> {
  const options = { ...LOG_FORM, level }
  if (format === 'json') return pino(options, standardOutput())
  const { prettyFactory } = await import('pino-pretty')
  const pretty = prettyFactory({ ignore: 'pid,hostname' })
  const output = standardOutput()
  const people: FlushedStream = { write: (line) => output.write(pretty(line)), flushSync: () => output.flushSync() }
  return pino(options, people)
}

/** For the few lines that programs wait for: always JSON, whatever the settings say. */
export function createAnnouncer(): Logger {
  return pino({ ...LOG_FORM, level: 'trace' }, standardOutput())
}
