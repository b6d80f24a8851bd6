export type {
  AgentCard,
  AgentDirectory,
  AgentFilter,
  AgentReply,
  AgentRequestOptions,
  AgentSkill,
} from './agent-directory.ts'
export type { McpCardOptions } from './card/server-card.ts'
export { mcpConnector } from './connector.ts'
export type { McpConnector } from './connector.ts'
export { CallEnded } from './errors.ts'
export type { CallEndReason } from './errors.ts'
export type { McpEvents } from './events/mcp-events.ts'
export { createMcpFetchHandler } from './fetch-handler.ts'
export type { McpFetchHandler } from './fetch-handler.ts'
export { brokerStateKey } from './input/state-key.ts'
export type { StateKey } from './input/state-key.ts'
export { METADATA_PATH } from './oauth/protected-resource.ts'
export type { McpOAuthOptions } from './oauth/protected-resource.ts'
export type { McpOperations, TaskOperations } from './operations.ts'
export type { McpHooks, McpOutcome, McpRequestEvent } from './hooks.ts'
export type { McpConnectorOptions } from './options.ts'
export { brokerTaskStore } from './tasks/broker-task-store.ts'
export type { TaskOptions } from './tasks/options.ts'
export type { TaskChange, TaskOverview } from './tasks/task-history.ts'
export type { NewTaskEntry, TaskEntry, TaskSink, TaskStore } from './tasks/task-store.ts'
export type { ObjectSchema, ToolAnnotations, ToolDefinition, ToolOutcome, InputNeeded } from './tools/tool.ts'
export { MCP_CODES } from './wire/codes.ts'
export { PROTOCOL_VERSIONS, SUPPORTED_VERSIONS } from './wire/revisions.ts'
export type { ServerInfo } from './wire/revision.ts'
