export { openRegistry } from './agent-registry.ts'
export type { AgentRegistry } from './agent-registry.ts'
export { AgentCardSchema, isAgentId, ShownCardSchema } from './card/agent-card.ts'
export type { AgentCard, AgentSkill } from './card/agent-card.ts'
export { agentOptions, isParkable, isRestOnly } from './card/agent-options.ts'
export type { AgentLiveness, AgentOffline, AgentOptions, AgentQueue, AgentWire } from './card/agent-options.ts'
export { withoutUnsafeLinks } from './card/card-problems.ts'
export type { CardProblem } from './card/card-problems.ts'
export { agentShares } from './directory/agent-limits.ts'
export { agentInstances } from './card/agent-instance.ts'
export type { RegistrationName } from './agent-instances.ts'
export type { AgentInstance } from './card/agent-instance.ts'
export { DISCOVERY_CHANNEL } from './discovery/discovery-log.ts'
export { REGISTRY_ERRORS, RegistryError } from './errors.ts'
export type { RegistryErrorCode } from './errors.ts'
export type { AgentFilter } from '@signalbox/broker-core/ports'
export type * from './options.ts'
export { CALLER_CREDENTIALS_HEADER, CredentialsError } from './credentials/agent-authorization.ts'
export type {
  AgentAuthorization,
  OperatorCredentials,
  OperatorCredentialsOf,
} from './credentials/agent-authorization.ts'
export { CREDENTIALS_FORM, isAgentCredentials } from './credentials/agent-credentials.ts'
export type { AgentCredentials, CredentialKind } from './credentials/agent-credentials.ts'
export type { ProbeResult } from './discovery/discovery-entry.ts'
export {
  OutboundConnections as AgentConnections,
  OutboundTarget as AgentTarget,
  readProxyUrl,
} from '@signalbox/http-kit/internal'
export type { ConnectionOptions } from '@signalbox/http-kit/internal'
export { AgentAddressError, AgentAddressPolicy } from './agent-addresses.ts'
export type { AgentAddressOptions } from './agent-addresses.ts'
export type { ResolveHost } from '@signalbox/http-kit'
export type { ListeningAddress } from '@signalbox/http-kit/internal'
export { ListedAgents, readListedAgents } from './listed-agents.ts'
export type { ListedAgentEvents } from './listed-agents.ts'
export { InboxError } from './http/agent-inbox.ts'
export type {
  AgentInbox,
  InboxErrorCode,
  InboxEventsInput,
  InboxEventsResult,
  InboxItem,
  InboxLeaseOptions,
  InboxNackInput,
  InboxStatus,
} from './http/agent-inbox.ts'
export { documentedRegistryRoutes, registryRoutes } from './http/connector.ts'
export type { RegistryRoutes } from './http/connector.ts'
export type {
  RegistryOutcome,
  RegistryRequestEvent,
  RegistryRouteHooks,
  RegistryRouteOptions,
} from './http/route-options.ts'
