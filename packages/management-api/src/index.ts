export type { AuditEntry, AuditEvent, AuditOutcome } from './audit/audit-entry.ts'
export { AUDIT_CHANNEL } from './audit/audit-entry.ts'
export { AuditLog } from './audit/audit-log.ts'
export type { AuditLogOptions } from './audit/audit-log.ts'
export type { ConsoleOptions } from './console/console-routes.ts'
export type { ConsoleOAuth, ConsoleOAuthPort } from './console/sign-in.ts'
export type { ResponseEnvelope } from './envelope.ts'
export { MANAGEMENT_ERRORS } from './errors.ts'
export type { ManagementErrorCode } from './errors.ts'
export type { MapReports, MappedAgentCall, MappedAttempt } from './map/traffic-map.ts'
export type { MonitorsOptions } from './monitor/monitors.ts'
export { openApiDocument } from './openapi/document.ts'
export type { DocumentInfo } from './openapi/document.ts'
export type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
export { MANAGEMENT_ROUTES } from './openapi/management-routes.ts'
export type { ManagementAuditOptions, ManagementHooks, ManagementOptions } from './options.ts'
export type { ManagementControl } from './options.ts'
export type { AgentCallTotals, ReadAgentCalls } from './history/histories.ts'
export type {
  AgentCall,
  AgentCallFailure,
  AgentCallsPort,
  AgentCallStream,
  AgentInboxesPort,
  AgentInboxStatus,
  AgentInstanceStatus,
  AgentProbe,
  AgentsPort,
  AgentStatus,
  AgentTaskEvent,
  AgentTaskStatus,
  StreamsPort,
  StreamStatus,
  WorkEvent,
} from './agent-ports.ts'
export type {
  ManagementServices,
  MetricsPort,
  NodeStatus,
  TasksPort,
  TaskStatus,
  ToolResult,
  ToolsPort,
  ToolStatus,
  ReloadFailure,
  SecurityStatus,
  SettingStatus,
  SettingStatusValue,
  WebhooksPort,
  WebhookStatus,
} from './ports.ts'
