import type { AuditLog } from '@signalbox/management-api'

import type { SecurityEvent, NotifySecurity } from './events.ts'

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
