export type {
  AgentCard,
  AgentDirectory,
  AgentFilter,
  AgentReply,
  AgentRequestOptions,
  AgentSkill,
} from './agent-directory.ts'
export { CallEnded } from './errors.ts'
export type { CallEndReason } from './errors.ts'
export { createMcpHandler } from './handler.ts'
export type { McpHandler } from './handler.ts'
export type { McpHooks, McpOptions, McpOutcome, McpRequestEvent } from './options.ts'
export { mcpConnector } from './plugin.ts'
export type { McpConnector, McpConnectorOptions } from './plugin.ts'
export { PROTOCOL_VERSIONS } from './wire/revisions.ts'
export type { ServerInfo } from './wire/revision.ts'
