import type { AuditLog } from '@signalbox/management-api'

import type { Logger } from '../logging/logger.ts'

/** An event that concerns the server's security, for the log and for the audit log. */
export type SecurityEvent =
  /** Refused credentials: the count for one address, within a minute at most. */
  | {
      readonly kind: 'authentication.failed'
      readonly address: string
      readonly count: number
      readonly reason: string
    }
  /** Failed TLS handshakes, counted in the same way. */
  | { readonly kind: 'handshake.failed'; readonly address: string; readonly count: number; readonly reason: string }
  /** Connections that were closed at once because too many are open, counted in the same way. */
  | { readonly kind: 'connections.refused'; readonly address: string; readonly count: number; readonly reason: string }
  | { readonly kind: 'keys.reloaded' }
  | { readonly kind: 'keys.failed'; readonly reason: string }
  | { readonly kind: 'card_keys.reloaded'; readonly kids: readonly string[] }
  | { readonly kind: 'card_keys.failed'; readonly reason: string }
  | { readonly kind: 'agent_credentials.reloaded'; readonly file: string; readonly agents: number }
  | { readonly kind: 'agent_credentials.refused'; readonly file: string; readonly reason: string }
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
  'keys.reloaded': { level: 'info', text: 'keys reloaded' },
  'keys.failed': { level: 'error', text: 'keys not reloaded: the previous keys, if any, remain in force' },
  'card_keys.reloaded': { level: 'info', text: 'card keys reloaded' },
  'card_keys.failed': { level: 'error', text: 'card keys not reloaded: the previous keys remain in force' },
  'agent_credentials.reloaded': { level: 'info', text: 'agent credentials reloaded' },
  'agent_credentials.refused': {
    level: 'error',
    text: 'agent credentials not reloaded: the previous credentials remain in force',
  },
  'policy.reloaded': { level: 'info', text: 'policy reloaded' },
  'policy.refused': { level: 'error', text: 'policy not reloaded: the previous policy remains in force' },
  'certificates.reloaded': { level: 'info', text: 'certificates reloaded' },
  'certificates.refused': {
    level: 'error',
    text: 'certificates not reloaded: the previous certificates remain in force',
  },
}

/** Logs a line for each event. */
export function logSecurity(log: Logger): NotifySecurity {
  return ({ kind, ...details }) => {
    const { level, text } = LINES[kind]
    log[level](details, text)
  }
}

/** The fields of an entry for a reload. It has no client: files and keys are reloaded automatically. */
interface Reload {
  readonly action:
    | 'reload_keys'
    | 'reload_card_keys'
    | 'reload_agent_credentials'
    | 'reload_policy'
    | 'reload_certificates'
  readonly outcome: 'success' | 'failure'
  readonly detail?: string
}

/**
 * Events that are not audited here: refused callers are audited with their listener, and the others
 * have no caller.
 */
const ONLY_LOGGED = ['authentication.failed', 'handshake.failed', 'connections.refused'] as const

type OnlyLogged = (typeof ONLY_LOGGED)[number]

/** Audits reloads of keys, card keys, policies and certificates. Events without a caller are only logged. */
export function auditSecurity(log: Pick<AuditLog, 'record'>): NotifySecurity {
  return (event) => {
    if (isReload(event)) log.record({ client: '', ...reloadOf(event) })
  }
}

type ReloadEvent = Exclude<SecurityEvent, { readonly kind: OnlyLogged }>

function isReload(event: SecurityEvent): event is ReloadEvent {
  return !ONLY_LOGGED.some((kind) => kind === event.kind)
}

function reloadOf(event: ReloadEvent): Reload {
  switch (event.kind) {
    case 'keys.reloaded':
      return { action: 'reload_keys', outcome: 'success' }
    case 'keys.failed':
      return { action: 'reload_keys', outcome: 'failure', detail: event.reason }
    case 'card_keys.reloaded':
      return { action: 'reload_card_keys', outcome: 'success', detail: event.kids.join(', ') }
    case 'card_keys.failed':
      return { action: 'reload_card_keys', outcome: 'failure', detail: event.reason }
    case 'agent_credentials.reloaded':
      return { action: 'reload_agent_credentials', outcome: 'success', detail: `${event.agents} agents` }
    case 'agent_credentials.refused':
      return { action: 'reload_agent_credentials', outcome: 'failure', detail: event.reason }
    case 'policy.reloaded':
      return { action: 'reload_policy', outcome: 'success', detail: `${event.rules} rules of ${event.file}` }
    case 'policy.refused':
      return { action: 'reload_policy', outcome: 'failure', detail: `${event.file}: ${event.problems.join('; ')}` }
    case 'certificates.reloaded':
      return { action: 'reload_certificates', outcome: 'success', detail: `${event.subject}, until ${event.validTo}` }
    default:
      return { action: 'reload_certificates', outcome: 'failure', detail: event.reason }
  }
}
