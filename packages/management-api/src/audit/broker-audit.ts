import { isReservedChannel } from '@signalbox/broker-core'
import type { BrokerErrorCode, BrokerObserver, Caller, ChannelType } from '@signalbox/broker-core'

import { Operator } from '../access/operator-surface.ts'
import type { AuditLog } from './audit-log.ts'

/** A refusal by the policy is recorded as a denial, so not again as a failure. */
const DENIED_CODE: BrokerErrorCode = 'FORBIDDEN'

/**
 * Audits the Broker: channels created, deleted and purged, denials by the policy and, if enabled,
 * every message. Calls by operators are left to the management actions, which record more. Reserved
 * channels are not audited.
 */
export function brokerAudit(audit: AuditLog, { messages }: { readonly messages: boolean }): BrokerObserver {
  const observer: BrokerObserver = {
    managed(action, type, channel, caller) {
      if (caller instanceof Operator || isReservedChannel(channel)) return
      audit.record({ ...from(caller), action: managedAction(action, type), outcome: 'success', type, channel })
    },
    failed(action, type, channel, caller, code) {
      if (caller instanceof Operator || type === undefined || code === DENIED_CODE) return
      if (action !== 'create' && action !== 'delete' && action !== 'purge') return
      audit.record({ ...from(caller), action: managedAction(action, type), outcome: 'failure', type, channel, code })
    },
    denied(action, pattern, channel, caller) {
      const target = pattern === 'agents' ? { agent: channel } : { type: pattern, channel }
      audit.record({ ...from(caller), action, outcome: 'denied', code: DENIED_CODE, ...target })
    },
  }
  if (!messages) return observer
  return {
    ...observer,
    accepted(type, channel, caller, { id }) {
      if (isReservedChannel(channel)) return
      audit.record({ ...from(caller), action: 'send', outcome: 'success', type, channel, detail: `message ${id}` })
    },
    delivered(type, channel, caller, { id }) {
      if (isReservedChannel(channel)) return
      audit.record({ ...from(caller), action: 'deliver', outcome: 'success', type, channel, detail: `message ${id}` })
    },
  }
}

/** Returns the name of the management action that does the same. */
function managedAction(action: 'create' | 'delete' | 'purge', type: ChannelType): string {
  if (action === 'purge') return type === 'queues' ? 'purge_queue' : 'purge_channel'
  return `${action}_channel`
}

function from({ clientId: client, address }: Caller): { readonly client: string; readonly address?: string } {
  return address === undefined ? { client } : { client, address }
}
