export { openRegistry } from './agent-registry.ts'
export type { AgentRegistry } from './agent-registry.ts'
export { AgentCardSchema, isAgentId, ShownCardSchema } from './card/agent-card.ts'
export type { AgentCard, AgentSkill } from './card/agent-card.ts'
export type { CardProblem } from './card/card-problems.ts'
export { agentShares } from './directory/agent-shares.ts'
export { DISCOVERY_CHANNEL } from './discovery/discovery-log.ts'
export { REGISTRY_ERRORS, RegistryError } from './errors.ts'
export type { RegistryErrorCode } from './errors.ts'
export type * from './options.ts'
export { agentChannel, decodeAgentQuery, WIRE_CHANNEL } from './requests/agent-query.ts'
export type { AgentQuery, AgentQueryMode, AnswerForm, WireRequest } from './requests/agent-query.ts'
export { encodeAgentReply } from './requests/agent-reply.ts'
export type { AgentFailure, AgentReply } from './requests/agent-reply.ts'
export { AgentRequests, GATEWAY_TIMEOUT_BUFFER_MS } from './requests/agent-requests.ts'
export type { AgentRequestOptions, AgentTimeouts } from './requests/agent-requests.ts'
export type { WireVersion } from './requests/wire-version.ts'
export { AgentAddressError, AgentAddressPolicy } from './url-safety/agent-address-policy.ts'
export type { AgentAddressOptions, ResolveHost } from './url-safety/agent-address-policy.ts'
export type { ListeningAddress } from './url-safety/own-addresses.ts'
export { ListQuerySchema } from './http/list-query.ts'
export { registryRoutes } from './http/plugin.ts'
export type { RegistryRoutes } from './http/plugin.ts'
export type {
  RegistryOutcome,
  RegistryRequestEvent,
  RegistryRouteHooks,
  RegistryRouteOptions,
} from './http/route-options.ts'
