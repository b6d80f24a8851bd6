import type { AgentDirectory } from '@signalbox/connector-mcp'
import type { AgentRegistry, AgentRequests } from '@signalbox/registry'

/** What the agent tools of the MCP connector see of the registered agents. */
export function agentDirectory(registry: AgentRegistry, requests: AgentRequests): AgentDirectory {
  return {
    list: async (filter) => registry.list(filter),
    get: (agentId) => registry.find(agentId),
    request: (agentId, envelope, options) => requests.request(agentId, envelope, options),
  }
}
