import type { DestinationStream, Logger } from 'pino'
import pino from 'pino'

import type { Config } from './config/schema.ts'

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

/** What every line of the log has in common. */
export const LOG_FORM = {
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level: string) => ({ level }) },
  redact: { paths: REDACTED, censor: '[redacted]' },
}

/** Standard output, written at once, so that nothing is lost at exit. */
function stdout(): DestinationStream {
  const destination = pino.destination({ fd: 1, sync: true })
  // A reader of the log that went away is no reason to stop serving, or not to shut down in order.
  destination.on('error', () => {})
  return destination
}

/** The server's log: one JSON line each on stdout, or lines for people. */
export async function createLogger({ level, format }: Config['log']): Promise<Logger> {
  const options = { ...LOG_FORM, level }
  if (format === 'json') return pino(options, stdout())
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ destination: stdout(), sync: true, ignore: 'pid,hostname' }))
}

/** For the few lines that programs wait for: always JSON, whatever the settings say. */
export function createAnnouncer(): Logger {
  return pino({ ...LOG_FORM, level: 'trace' }, stdout())
}
