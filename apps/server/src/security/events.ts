import type { Logger } from '../logging/logger.ts'

/** What happens to the server's protection, for the log and for an audit. */
export type SecurityEvent =
  /** Callers whose credentials were refused: so many from one address, within a minute at most. */
  | {
      readonly kind: 'authentication.failed'
      readonly address: string
      readonly count: number
      readonly reason: string
    }
  /** TLS handshakes that came to nothing, likewise. */
  | { readonly kind: 'handshake.failed'; readonly address: string; readonly count: number; readonly reason: string }
  /** Connections that were closed at once because too many are open, likewise. */
  | { readonly kind: 'connections.refused'; readonly address: string; readonly count: number; readonly reason: string }
  | { readonly kind: 'keys.reloaded' }
  | { readonly kind: 'keys.failed'; readonly reason: string }
  | { readonly kind: 'policy.reloaded'; readonly file: string; readonly rules: number }
  | { readonly kind: 'policy.refused'; readonly file: string; readonly problems: readonly string[] }
  | { readonly kind: 'certificates.reloaded'; readonly subject: string; readonly validTo: string }
  | { readonly kind: 'certificates.refused'; readonly reason: string }

export type NotifySecurity = (event: SecurityEvent) => void

const LINES: Readonly<
  Record<SecurityEvent['kind'], { readonly level: 'info' | 'warn' | 'error'; readonly text: string }>
> = {
  'authentication.failed': { level: 'warn', text: 'authentication failed' },
  'handshake.failed': { level: 'info', text: 'TLS handshake failed' },
  'connections.refused': { level: 'error', text: 'connections refused: too many are open' },
  'keys.reloaded': { level: 'info', text: 'keys reloaded: tokens are verified anew' },
  'keys.failed': { level: 'error', text: 'keys could not be had: those before, if any, stay in force' },
  'policy.reloaded': { level: 'info', text: 'policy reloaded' },
  'policy.refused': { level: 'error', text: 'policy not reloaded: the one before stays in force' },
  'certificates.reloaded': { level: 'info', text: 'certificates reloaded' },
  'certificates.refused': { level: 'error', text: 'certificates not reloaded: those before stay in force' },
}

/** Writes a line for each event. */
export function logSecurity(log: Logger): NotifySecurity {
  return ({ kind, ...details }) => {
    const { level, text } = LINES[kind]
    log[level](details, text)
  }
}
