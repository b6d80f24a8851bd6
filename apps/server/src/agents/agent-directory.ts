import type { AgentRequests } from '@signalbox/connector-a2a'
import { a2aVersionOf } from '@signalbox/connector-a2a'
import type { AgentDirectory } from '@signalbox/connector-mcp'
import type { AgentRegistry } from '@signalbox/registry'

/** Returns the registry as the agent tools of the MCP connector use it. */
export function agentDirectory(registry: AgentRegistry, requests: AgentRequests): AgentDirectory {
  return {
    list: async (filter) => registry.list(filter),
    get: (agentId) => registry.find(agentId),
    request(agentId, envelope, { method, ...options }) {
      const version = a2aVersionOf(method)
      const wire = version === undefined ? {} : { wire: { version, answer: 'agent' } as const }
      return requests.request(agentId, envelope, { ...options, ...wire })
    },
  }
}
