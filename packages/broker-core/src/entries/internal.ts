/**
 * Code that the Signalbox packages share. This entry is not public: any release may change it without a note in the
 * changelog. Other programs and engines use `@signalbox/broker-core` and `@signalbox/broker-core/engine`.
 * @internal
 */
export { parsePolicySteps } from '../authorization/parse-policy.ts'
export { ruleText } from '../authorization/policy.ts'
export type { RuleText } from '../authorization/policy.ts'
export { assertChannelName } from '../channel.ts'
export { channelListMatcher, channelMatcher, isWildcardPattern } from '../channel-pattern.ts'
export { createCompactedLog, readWholeLog } from '../compacted-log.ts'
export { messageOf } from '../errors.ts'
export { nameMatcher } from '../glob-matcher.ts'
export { messageSize } from '../message-size.ts'
export { NumberMap } from '../number-map.ts'
export { checkBroker, checkOptions, checkParts } from '../options.ts'
export type { OptionTypes } from '../options.ts'
export { OrderedSet } from '../ordered-set.ts'
export type { Entry } from '../ordered-set.ts'
export { attributesOf } from '../routing/attributes.ts'
export { compileCesql } from '../routing/cesql/cesql.ts'
export type { CesqlExpression, CesqlResult } from '../routing/cesql/cesql.ts'
export { CesqlParseError } from '../routing/errors.ts'
export { parseRoutingTableSteps } from '../routing/routing-table.ts'
export { codePoint, controlCharacterIn, shownText } from '../shown-text.ts'
export { mostSimilar } from '../similar.ts'
export { sortInTurns } from '../sort-in-turns.ts'
export { readSmallFile, readSmallFileSync, versionOfFile } from '../small-file.ts'
export type { SmallFile } from '../small-file.ts'
