/**
 * The public API for programs that use a Broker, and for connectors that offer it over a protocol. Engines use
 * `@signalbox/broker-core/engine`, and their tests `@signalbox/broker-core/testing`.
 */
export { Authorization } from './authorization/authorization.ts'
export type { Grant } from './authorization/authorization.ts'
export { PolicyError } from './authorization/parse-policy.ts'
export { parsePolicy } from './authorization/parse-policy.ts'
export type { Decision, Effect, Policy, PolicyRule } from './authorization/policy.ts'
export { POLICY_ACTIONS, RESOURCE_TYPES } from './authorization/policy.ts'
export type { PolicyAction, ResourceType } from './authorization/policy.ts'
export { Broker, BrokerHandle, createBroker } from './broker.ts'
export type { BrokerOptions, CreatedBroker } from './broker.ts'
export { ANONYMOUS } from './caller.ts'
export type { Caller } from './caller.ts'
export type { CallerLimitName, LimitsOfCaller } from './caller.ts'
export {
  CHANNEL_TYPES,
  channelNameProblem,
  isReservedChannel,
  MAX_CHANNEL_BYTES,
  RESERVED_PREFIX,
  subscriptionPatternProblem,
} from './channel.ts'
export type { ChannelType } from './channel.ts'
export type { ChannelName, ChannelOptions, ChannelState } from './engine/channel-engine.ts'
export type {
  Engine,
  EngineHealth,
  EngineLimits,
  EngineNode,
  EngineStats,
  OtherNode,
  QueueCounters,
} from './engine/engine.ts'
export type { EventsStoreSubscribeOptions, SubscribeOptions } from './engine/event-engine.ts'
export type { AppendResult, EventsStoreStart, LatestOptions, ReadOptions } from './engine/events-store-engine.ts'
export type { MessageContent, ResultLimit } from './engine/result-size.ts'
export type { NackOptions, PeekOptions, SendResult, SettleResult } from './engine/queue-engine.ts'
export type { RequestOptions, RequestType } from './engine/request-engine.ts'
export type { Subscription } from './engine/subscription.ts'
export { BROKER_ERRORS, BrokerError, isBrokerError } from './errors.ts'
export type { BrokerErrorCode } from './errors.ts'
export { ACTIVE_MS } from './handle/channels.ts'
export type { ChannelFilter, ChannelInfo, ChannelPage, ChannelPageInput, Channels } from './handle/channels.ts'
export type { EventsStore, StoredEventInput } from './handle/events-store.ts'
export type { Events } from './handle/events.ts'
export { DEFAULT_LEASE_MS, MAX_PAUSE_MS } from './handle/queues.ts'
export type { QueueReceiveInput, Queues, QueueSendInput } from './handle/queues.ts'
export type { ReplyInput, Requests } from './handle/requests.ts'
export { decodeText, encodeText, MAX_TAGS } from './message.ts'
export type {
  Message,
  MessageInput,
  OutgoingMessage,
  QueueDelivery,
  QueueMessage,
  Reply,
  RequestMessage,
  StoredEvent,
  Tags,
} from './message.ts'
export type { Action, Attachment, BrokerObserver, GateReason, RequestOutcome } from './observer.ts'
export type { Duration } from './work/work.ts'
export { LeaseLost } from './work/work.ts'
export type { Work, WorkHandler, WorkMessage, WorkOptions } from './work/work.ts'
export { WorkerPool } from './work/worker-pool.ts'
export { RoutingTableError } from './routing/errors.ts'
export type { RoutedCopy, RoutingFailure, RoutingFailureReason, RoutingPlace } from './routing/routing.ts'
export { MAX_COPIES, MAX_HOPS } from './routing/route.ts'
export { Routing } from './routing/routing.ts'
export { parseRoutingTable } from './routing/routing-table.ts'
export type { RoutingTable } from './routing/routing-table.ts'
export type { RoutableType, RoutingRule, RoutingTarget } from './routing/rule.ts'
export { SETTING_MEMBERS } from './settings/channel-settings.ts'
export type {
  ChannelSettings,
  ConsumerSettings,
  DeduplicationSettings,
  GroupSettings,
  RetentionSettings,
  RetrySettings,
  SchemaSettings,
  SettingMember,
  SettingsEntry,
} from './settings/channel-settings.ts'
export { PAUSED_UNTIL_RESUMED } from './settings/queue-pauses.ts'
export type { PauseStore, QueuePause, QueuePauses } from './settings/queue-pauses.ts'
export type { SettingOrigin } from './settings/settings-table.ts'
export { isPattern, SettingsTable } from './settings/settings-table.ts'
export type { SpanAttributes } from './tracing/attributes.ts'
export type {
  RemoteParent,
  Span,
  SpanKind,
  SpanLink,
  SpanParent,
  SpanStart,
  TraceContext,
  TraceHeaders,
  Tracing,
} from './tracing/tracing.ts'
