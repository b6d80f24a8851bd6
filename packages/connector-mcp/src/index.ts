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
export { eventWebhookFormat } from './events/event-webhooks.ts'
export type {
  EventDelivery,
  EventSubscription,
  EventSubscriptionInput,
  EventVerification,
  EventWebhookErrorCode,
  EventWebhookFailure,
  EventWebhookFormat,
  EventWebhooks,
} from './events/event-webhooks.ts'
export type { EventTypeOptions } from './events/event-types.ts'
export type { EventsOptions } from './events/options.ts'
export { createMcpFetchHandler } from './fetch-handler.ts'
export type { McpFetchHandler } from './fetch-handler.ts'
export { brokerStateKey } from './input/state-key.ts'
export type { StateKey } from './input/state-key.ts'
export { METADATA_PATH } from './oauth/protected-resource.ts'
export type { McpOAuthOptions } from './oauth/protected-resource.ts'
export type { McpOperations, TaskOperations } from './operations.ts'
export type { McpConnectorOptions, McpHooks, McpOutcome, McpRequestEvent } from './options.ts'
export { brokerTaskStore } from './tasks/broker-task-store.ts'
export type { TaskOptions } from './tasks/options.ts'
export type { TaskChange, TaskOverview } from './tasks/task-history.ts'
export type { NewTaskEntry, TaskEntry, TaskSink, TaskStore } from './tasks/task-store.ts'
export type { ObjectSchema, ToolAnnotations, ToolDefinition, ToolOutcome, InputNeeded } from './tools/tool.ts'
export { MCP_CODES } from './wire/codes.ts'
export { EVENTS_CODES } from './wire/events-profile.ts'
export type { EventsCodeFamily } from './wire/events-profile.ts'
export { PROTOCOL_VERSIONS, SUPPORTED_VERSIONS } from './wire/revisions.ts'
export type { ServerInfo } from './wire/revision.ts'
