import type { AgentInstanceStatus, AgentsPort } from '@signalbox/management-api'
import type { AgentCard } from '@signalbox/registry'
import { agentInstances, RegistryError } from '@signalbox/registry'

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
        const probe = registry.probeOf(agent_id)
        return {
          agent_id,
          name,
          version,
          url,
          registered_by,
          registered_at: Date.parse(card.registered_at),
          last_seen: lastSeen,
          expires_at: expiryOf(lastSeen, ttlSeconds),
          in_flight: inFlight.get(agent_id) ?? 0,
          ...(probe === undefined ? {} : { probe: { at: probe.atMs, error: probe.error } }),
          instances: instancesOf(card, metrics.inFlightByInstance(agent_id), ttlSeconds),
        }
      })
    },
    calls: () => metrics.totals(),
    card: (agentId) => registry.get(agentId),
    deregister: (agentId, { clientId }, instanceId) =>
      audit.byOperator(agentId, async () => {
        try {
          const name = instanceId === undefined ? {} : { instanceId }
          await registry.deregister(agentId, { clientId, admin: true }, name)
          return true
        } catch (error) {
          if (error instanceof RegistryError && error.status === 404) return false
          throw error
        }
      }),
  }
}

function expiryOf(lastSeen: number, ttlSeconds: number): number | null {
  return ttlSeconds === 0 ? null : lastSeen + ttlSeconds * 1000
}

function instancesOf(
  card: AgentCard,
  inFlight: ReadonlyMap<string, number>,
  ttlSeconds: number,
): readonly AgentInstanceStatus[] {
  return agentInstances(card).map(({ instance_id, url, registered_at, last_seen }) => ({
    instance_id,
    url,
    registered_at: Date.parse(registered_at),
    last_seen: Date.parse(last_seen),
    expires_at: expiryOf(Date.parse(last_seen), ttlSeconds),
    in_flight: inFlight.get(instance_id) ?? 0,
  }))
}
