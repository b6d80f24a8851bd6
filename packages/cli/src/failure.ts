import { SignalboxError } from '@signalbox/client'

import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { tlsRemedy } from './tls.ts'

const BY_CODE: Readonly<Record<string, ExitCode>> = {
  ARGUMENT_INVALID: EXIT.USAGE,
  BODY_INVALID: EXIT.USAGE,
  CHANNEL_INVALID: EXIT.USAGE,
  CHANNEL_RESERVED: EXIT.USAGE,
  MESSAGE_INVALID: EXIT.USAGE,
  PARAMETER_INVALID: EXIT.USAGE,
  SETTINGS_INVALID: EXIT.USAGE,
  SCHEMA_MISMATCH: EXIT.USAGE,
  UPGRADE_FAILED: EXIT.USAGE,
  UPGRADE_REQUIRED: EXIT.USAGE,
  AGENT_NOT_FOUND: EXIT.NOTHING,
  INBOX_NOT_FOUND: EXIT.NOTHING,
  TASK_NOT_FOUND: EXIT.NOTHING,
  SETTINGS_NOT_FOUND: EXIT.NOTHING,
  AGENT_TIMEOUT: EXIT.NOTHING,
  CHANNEL_NOT_FOUND: EXIT.NOTHING,
  NOT_FOUND: EXIT.NOTHING,
  NO_SUBSCRIBER: EXIT.NOTHING,
  REQUEST_TIMEOUT: EXIT.NOTHING,
  TIMEOUT: EXIT.NOTHING,
  FORBIDDEN: EXIT.REFUSED,
  ORIGIN_REFUSED: EXIT.REFUSED,
  ROLE_MISSING: EXIT.REFUSED,
  UNAUTHENTICATED: EXIT.REFUSED,
  UNREACHABLE: EXIT.UNREACHABLE,
}

/** The problem of a command, for people and for programs. */
export interface Failure {
  readonly exit: ExitCode
  readonly code: string
  readonly message: string
}

/** Returns the failure of a call to a server; `undefined` for other errors. */
export function failureOf(error: unknown): Failure | undefined {
  if (!(error instanceof SignalboxError)) return undefined
  const { code, status } = error
  const { allowed } = error.details
  // A client that cannot connect writes the URL first.
  const remedy = code === 'UNREACHABLE' ? tlsRemedy(error, error.message) : undefined
  const message = remedy === undefined ? error.message : error.message.replace(/; check that .*$/, `; ${remedy}`)
  const refused = status === 401 || status === 403
  const text = typeof allowed === 'string' ? `${message}; allowed is ${allowed}` : message
  return { exit: BY_CODE[code] ?? (refused ? EXIT.REFUSED : EXIT.FAILED), code, message: text }
}
