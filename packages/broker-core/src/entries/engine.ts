/**
 * The public API for authors of engines: the port, its types, and helpers that engines share.
 * `@signalbox/broker-core/testing` has the contract suite that an engine must pass.
 */
export { CHANNEL_TYPES, isReservedChannel } from '../channel.ts'
export type { ChannelType, StoredType } from '../channel.ts'
export { isWildcardPattern } from '../channel.ts'
export type { ChannelEngine, ChannelName, ChannelOptions, ChannelState } from '../engine/channel-engine.ts'
export type {
  Engine,
  EngineCapabilities,
  EngineHealth,
  EngineLimits,
  EngineStats,
  EngineNode,
  OtherNode,
  QueueCounters,
} from '../engine/engine.ts'
export type { EventsStoreSubscribeOptions, SubscribeOptions, EventEngine } from '../engine/event-engine.ts'
export type {
  AppendResult,
  EventsStoreAppend,
  EventsStoreEngine,
  EventsStoreStart,
  LatestOptions,
  ReadOptions,
  StoredEventListener,
} from '../engine/events-store-engine.ts'
export type {
  NackOptions,
  PeekOptions,
  QueueEngine,
  QueueListener,
  QueueSend,
  ReceiveOptions,
  SendResult,
  SettleResult,
} from '../engine/queue-engine.ts'
export {
  decodeEntry,
  decodeEvent,
  decodeQueueMessage,
  decodeReply,
  decodeRequest,
  encodeEntry,
  encodeEvent,
  encodeQueueMessage,
  encodeReply,
  encodeRequest,
  MESSAGE_ENVELOPE_BYTES,
} from '../engine/message-codec.ts'
export type {
  EncodedEntry,
  EncodedEvent,
  EncodedQueueMessage,
  EncodedReply,
  EncodedRequest,
} from '../engine/message-codec.ts'
export { ResultSize } from '../engine/result-size.ts'
export type { MessageContent, ResultLimit } from '../engine/result-size.ts'
export type { RequestEngine, RequestHandler, RequestOptions, RequestType } from '../engine/request-engine.ts'
export type { Subscription } from '../engine/subscription.ts'
export type { EngineOptions } from '../engine/engine-options.ts'
export { BROKER_ERRORS, BrokerError, groupLimit, isBrokerError, unavailable } from '../errors.ts'
export type { BrokerErrorCode } from '../errors.ts'
export type {
  Message,
  OutgoingMessage,
  QueueDelivery,
  QueueMessage,
  Reply,
  RequestMessage,
  StoredEvent,
  Tags,
} from '../message.ts'
export { toMessage, toQueueMessage, toStoredEvent } from '../message.ts'
export { messageSize } from '../engine/result-size.ts'
export { OpenSubscription } from '../engine/subscription.ts'
export { KEPT_UNTIL, keptUntil, UNTIL_DIGITS } from '../message-tags.ts'
export { DEDUPLICATION_MS, DURABLE_GROUP_MS, MAX_DURABLE_GROUPS, TOMBSTONE_MS } from '../engine/engine-options.ts'
export { PatternIndex } from '../collections/pattern-index.ts'
export { SettingsTable } from '../settings/settings-table.ts'
export { retryDelayMs } from '../settings/channel-settings.ts'
export type { ChannelSettings, GroupSettings, RetentionSettings, SettingsEntry } from '../settings/channel-settings.ts'
export { isDeadLetter, retryLimits, returnOf } from '../settings/retry.ts'
export type { DeadLetterReason, MessageReturn, ReceivedMessage, RetryLimits } from '../settings/retry.ts'
export {
  compactProblem,
  deduplicationMsOf,
  entryKeyOf,
  expiredTarget,
  expiryOf,
  isCompact,
  maxAgeMsOf,
  queueLimitsOf,
  retentionOf,
} from '../settings/retention.ts'
export type { ExpiredMessage, QueueLimit } from '../settings/retention.ts'
export { groupLimitOf, groupOf } from '../settings/message-groups.ts'
