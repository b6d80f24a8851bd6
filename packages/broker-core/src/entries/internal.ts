/**
 * Code that the Signalbox packages share. This entry is not public: any release may change it without a note in the
 * changelog. Other programs and engines use `@signalbox/broker-core` and `@signalbox/broker-core/engine`.
 * @internal
 */
export { parsePolicySteps } from '../authorization/parse-policy.ts'
export { ruleText } from '../authorization/policy.ts'
export type { RuleText } from '../authorization/policy.ts'
export { assertChannelName } from '../channel.ts'
export { channelListMatcher, channelMatcher, isWildcardPattern } from '../channel.ts'
export { ENGINE_OPTION_TYPES, engineSettingsOf, wholeOption } from '../engine/engine-options.ts'
export { FAILED_REPLY, noSubscriber, unanswered } from '../engine/request-engine.ts'
export { messageOf } from '../errors.ts'
export {
  digestOf,
  IDEMPOTENCY_KEY_FORM,
  IdempotencyKeys,
  isIdempotencyKey,
  requestLog,
} from '../keyed-log/idempotency-keys.ts'
export type { ClaimedKey, KeyedRequest, KeyRecord } from '../keyed-log/idempotency-keys.ts'
export { KeyedLog } from '../keyed-log/keyed-log.ts'
export type { KeyedContent, KeyedEntry, KeyedLogFollower, KeyedLogSink } from '../keyed-log/keyed-log.ts'
export { Nodes, positionFor } from '../keyed-log/nodes.ts'
export { keepSubscribed, MAX_TIMER_MS, pauseAfter, retry } from '../keyed-log/retry.ts'
export type { Backoff } from '../keyed-log/retry.ts'
export { nameMatcher } from '../glob.ts'
export { messageSize } from '../engine/result-size.ts'
export { MultiMap } from '../collections/multi-map.ts'
export { NumberMap } from '../collections/number-map.ts'
export { checkBroker, checkOptions, checkParts } from '../options.ts'
export type { OptionType, OptionTypes } from '../options.ts'
export { OrderedSet } from '../collections/ordered-set.ts'
export type { Entry } from '../collections/ordered-set.ts'
export { attributesOf } from '../routing/attributes.ts'
export { compileCesql } from '../routing/cesql/cesql.ts'
export type { CesqlExpression, CesqlResult } from '../routing/cesql/cesql.ts'
export { CesqlParseError } from '../routing/errors.ts'
export { SchemaReader } from '../settings/schema/json-schema.ts'
export { ChannelMap } from '../channel-map.ts'
export { parseRoutingTableSteps } from '../routing/routing-table.ts'
export { SettledReceipts } from '../collections/settled-receipts.ts'
export type { Ending } from '../collections/settled-receipts.ts'
export { codePoint, controlCharacterIn, shownText } from '../text.ts'
export { closest, mostSimilar, plausibleMistakes } from '../text.ts'
export { copyInTurns, inTurns, Pace, SerialTasks, TickWork, tickWork } from '../in-turns.ts'
export { Semaphore } from '../semaphore.ts'
export { closingQuote, isBlank, parseEscapedKeys, parseJsonText } from '../json-text.ts'
export { startThread } from '../start-thread.ts'
export { unlessAborted } from '../unless-aborted.ts'
export { readSmallFile, readSmallFileSync, versionOfFile } from '../small-file.ts'
export type { SmallFile } from '../small-file.ts'
export { serverAttributes } from '../tracing/attributes.ts'
export { creationParent } from '../tracing/message-spans.ts'
export { traceContextOf, traceTags } from '../tracing/trace-context.ts'
export { MAX_LINKS, spanTime } from '../tracing/tracing.ts'
