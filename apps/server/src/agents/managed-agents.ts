import type { AgentsPort } from '@signalbox/management-api'
import { RegistryError } from '@signalbox/registry'

import type { AgentAudit } from './agent-audit.ts'
import type { Agents } from './open-agents.ts'

/**
 * Returns the registered agents as the management API lists and removes them.
 * @param ttlSeconds The time without a heartbeat after which an agent expires; 0 is never
 */
export function managedAgents({ registry, metrics }: Agents, audit: AgentAudit, ttlSeconds: number): AgentsPort {
  return {
    list() {
      const inFlight = metrics.inFlight()
      return registry.list().map((card) => {
        const { agent_id, name, version = '', url, registered_by } = card
        const lastSeen = Date.parse(card.last_seen)
        return {
          agent_id,
          name,
          version,
          url,
          registered_by,
          registered_at: Date.parse(card.registered_at),
          last_seen: lastSeen,
          expires_at: ttlSeconds === 0 ? null : lastSeen + ttlSeconds * 1000,
          in_flight: inFlight.get(agent_id) ?? 0,
        }
      })
    },
    deregister: (agentId, { clientId }) =>
      audit.byOperator(agentId, async () => {
        try {
          await registry.deregister(agentId, { clientId, admin: true })
          return true
        } catch (error) {
          if (error instanceof RegistryError && error.code === 'AGENT_NOT_FOUND') return false
          throw error
        }
      }),
  }
}
