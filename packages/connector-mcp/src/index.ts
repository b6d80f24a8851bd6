export type {
  AgentCard,
  AgentDirectory,
  AgentPage as AgentFilter,
  AgentReply,
  AgentRequestOptions,
  AgentSkill,
} from '@signalbox/broker-core/ports'
export type { McpCardOptions } from './server-card.ts'
export { documentedMcpRoutes, mcpConnector } from './connector.ts'
export type { McpConnector } from './connector.ts'
export { CallEnded } from './calls.ts'
export type { CallEndReason } from './calls.ts'
export type { McpEvents } from './events/mcp-events.ts'
export { createMcpFetchHandler } from './connector.ts'
export type { McpFetchHandler } from './connector.ts'
export { brokerStateKey } from './request-state.ts'
export type { StateKey } from './request-state.ts'
export { METADATA_PATH } from './oauth.ts'
export type { McpOAuthOptions } from './oauth.ts'
export type { McpOperations, TaskOperations } from './operations.ts'
export type { McpHooks, McpOutcome, McpRequestEvent } from './hooks.ts'
export type { McpConnectorOptions } from './options.ts'
export { brokerTaskStore } from './tasks/task-store.ts'
export type { TaskOptions } from './tasks/options.ts'
export type { TaskChange, TaskOverview } from './tasks/task-index.ts'
export type { NewTaskEntry, TaskEntry, TaskSink, TaskStore } from './tasks/task-store.ts'
export type { ObjectSchema, ToolAnnotations, ToolDefinition, ToolOutcome, InputNeeded } from './tools/tool.ts'
export { MCP_CODES } from './wire/2026-07-28.ts'
export { PROTOCOL_VERSIONS, SUPPORTED_VERSIONS } from './wire/revisions.ts'
export type { ServerInfo } from './wire/revision.ts'
