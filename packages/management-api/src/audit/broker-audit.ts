import { isReservedChannel } from '@signalbox/broker-core'
import type { BrokerErrorCode, BrokerObserver, Caller, ChannelType } from '@signalbox/broker-core'

import { Operator } from '../access/operator.ts'
import type { AuditLog } from './audit-log.ts'

/** What the policy refused is told as a denial, and not once more as a failure. */
const DENIED_CODE: BrokerErrorCode = 'FORBIDDEN'

/** By the names of the management actions that do the same. */
function managedAction(action: 'create' | 'delete' | 'purge', type: ChannelType): string {
  if (action === 'purge') return type === 'queues' ? 'purge_queue' : 'purge_channel'
  return `${action}_channel`
}

function from({ clientId: client, address }: Caller): { readonly client: string; readonly address?: string } {
  return address === undefined ? { client } : { client, address }
}

/**
 * Audits what passes through the Broker: channels created, deleted and purged, what the policy denies, and, where asked
 * for, every message. What an operator does is left to the management action, which knows more; so are the broker's own
 * channels.
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
