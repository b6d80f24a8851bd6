export type { AgentLookup } from './options.ts'
export { NO_CARD_KEYS, openCardKeys } from './cards/card-keys.ts'
export type { CardKey, CardKeyEvents, CardKeys } from './cards/card-keys.ts'
export type { A2aDependencies } from './options.ts'
export type { A2aConnectorOptions, A2aHooks, A2aRequestEvent, AgentCallEvent, Platform } from './options.ts'
export { a2aConnector, documentedA2aRoutes } from './connector.ts'
export type { A2aConnector } from './connector.ts'
export type { OperatorCall, OperatorCallAnswer, OperatorCalls } from './gateway/operator-calls.ts'
export type {
  AgentInboxes,
  InboxTask,
  InboxTaskPhase,
  InboxTasks,
  InboxTasksOptions,
} from './operators/agent-inboxes.ts'
export type { KeyedOutcome, LeaseOutcome, ReplayOutcome, RunCounts } from './operators/run-counts.ts'
export type { RunEvent, RunEventKind, RunEvents, RunEventsOptions } from './operators/run-events.ts'
export type { OpenAgentStreams, OpenStreamStatus } from './stream/open-streams.ts'
export type { PushSubscriptions } from './push/push-configurations.ts'
export type { StreamEvent } from './stream/recent-events.ts'
export type { StreamLimits } from './stream/limits.ts'
export type { AnswerFormat, WireRequest } from './requests/agent-query.ts'
export type { AgentFailure, AgentReply } from './requests/agent-reply.ts'
export { agentDirectory } from './gateway/agent-directory.ts'
export { AgentRequests } from './requests/agent-requests.ts'
export type { AgentRequestOptions, AgentTimeouts, RepliesOnTheWay } from './requests/agent-requests.ts'
export type { ReplyBudget as ReplyHold } from '@signalbox/broker-core/ports'
export { a2aVersionOf } from './wire/index.ts'
export type { WireVersion } from './wire/index.ts'
export { readProxyUrl } from '@signalbox/registry'
