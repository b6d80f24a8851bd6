// For the packages of Signalbox alone: no part of it is stable.
export * as argument from './schema/argument-types.ts'
export { ANONYMOUS_ACCOUNT } from './admission/admission-control.ts'
export { derivedLimits, half } from './admission/limits.ts'
export type { DerivedLimits } from './admission/limits.ts'
export { isFlood, paceFloods } from './admission/connection-floods.ts'
export { limitConnections, openFileLimit } from './admission/connection-limit.ts'
export type { ConnectionLimitOptions } from './admission/connection-limit.ts'
export { Refusals } from './admission/refusal-reports.ts'
export type { RefusalReport } from './admission/refusal-reports.ts'
export { restRefusal } from './admission/refusal.ts'
export type { RestRefusal, RestRefusalCode } from './admission/refusal.ts'
export { HeldBytes } from './admission/request-hold.ts'
export { addressOf, networkOf } from './admission/trusted-proxies.ts'
export { secretIn } from './authentication/keys.ts'
export { baseUrlOf, readPublicUrl } from './base-url.ts'
export type { BaseUrl } from './base-url.ts'
export type { DocumentedResponse, DocumentedRoute } from './documented-route.ts'
export { authenticationFailed, RefusedError } from './errors.ts'
export { JsonRpcExchange } from './json/json-rpc-exchange.ts'
export {
  errorText,
  idKey,
  idText,
  internalError,
  isIdText,
  isJsonRpc,
  isServerError,
  jsonRpcErrorText,
  readRequestHead,
  readRequestId,
  scanJsonRpc,
  successText,
} from './json/json-rpc.ts'
export type { RequestHead, ScannedMessage } from './json/json-rpc.ts'
export { checkJson, onOneLine, outlineOf, trimmedJson } from './json/check-json.ts'
export type { CheckedJson, MemberBytes } from './json/check-json.ts'
export {
  canonicalJson,
  isJsonObject,
  limitText,
  MAX_JSON_DEPTH,
  MAX_JSON_KEYS,
  MAX_JSON_PARTS,
  parseJson,
  parseJsonInSteps,
  readJson,
  scanLimits,
} from './json/json.ts'
export type { JsonLimits, JsonProblem, ParsedJson } from './json/json.ts'
export { elementTexts, memberText, memberTextInSteps, scanJson, scanJsonInSteps } from './json/scan.ts'
export type { ExceededLimit, MemberSink, Scan, ScanLimits } from './json/scan.ts'
export { NameResolver, resolveBySystem } from './names/name-resolver.ts'
export type { NameResolverOptions } from './names/name-resolver.ts'
export { AddressPolicy } from './outbound/address-policy.ts'
export type { AddressLookup, AddressRules, ListeningAddress, Origin } from './outbound/address-policy.ts'
export { AddressList, ALWAYS_REFUSED, hostName, ipAddress } from './outbound/addresses.ts'
export type { IpAddress } from './outbound/addresses.ts'
export { AnswerReader, OpenRequests } from './outbound/answer-reader.ts'
export type { Answer, AnswerLimits } from './outbound/answer-reader.ts'
export { OutboundConnections, OutboundTarget } from './outbound/connections.ts'
export type { ConnectionOptions } from './outbound/connections.ts'
export { download, fetchDocument } from './outbound/documents.ts'
export { failureOf } from './outbound/failures.ts'
export type { FailureKind } from './outbound/failures.ts'
export { readProxyUrl } from './outbound/forward-proxy.ts'
export { channelSettingMembers, channelSettingTarget, readChannelSettings } from './schema/channel-settings.ts'
export type { GivenSettings } from './schema/channel-settings.ts'
export { CATCHUP_SECONDS, isSchedule, scheduleId, scheduleMembers, scheduleProblems } from './schema/schedule.ts'
export type { GivenSchedule } from './schema/schedule.ts'
export {
  argumentProblems,
  compileArguments,
  compileLater,
  problemsText,
  shownValue,
} from './schema/compile-arguments.ts'
export type { ArgumentProblem, ArgumentRule, CompiledCheck } from './schema/compile-arguments.ts'
export { compileQuery, parameterProblemsText } from './schema/compile-query.ts'
export type { ParameterProblem } from './schema/compile-query.ts'
export { argumentsForm, defineOperation, queryForm } from './schema/operation.ts'
export type { Operation, OperationSource } from './schema/operation.ts'
export {
  answerBound,
  bodyText,
  isoTime,
  longBodyText,
  longMessageShape,
  messageShape,
  messageSizeInJson,
  parseTimestamp,
  storedEventShape,
  timestampRefusal,
} from './schema/message-shape.ts'
export type { BodyText, LongBodyText, ReadingHold } from './schema/message-shape.ts'
export { KEY_BYTES, openKeyFile, SecretBox } from './secrets/secret-box.ts'
export { AnswerRelay, PendingRequests } from './surface/answer-relay.ts'
export type { AwaitedReply } from './surface/answer-relay.ts'
export { jsonHeadersProblem, readBody, refuseBody, REFUSED_BODY_BYTES } from './surface/body.ts'
export type { BodyBudget } from './surface/body.ts'
export { createConnector, failureHook, quietHook } from './surface/connector.ts'
export type { ConnectorParts } from './surface/connector.ts'
export { encodedBody, encodedInSteps } from './surface/encoded-text.ts'
export { allSteps, fairTurns, FairTurns } from './surface/fair-turns.ts'
export { hopsOf, hopsProblem, MAX_AGENT_HOPS } from './surface/http-message.ts'
export { InFlight, OpenStreams } from './surface/in-flight.ts'
export {
  CONNECTOR_OPTION_TYPES,
  CONNECTOR_OPTIONS,
  DEFAULT_DRAIN_MS,
  MAX_TIMER_MS,
  resolveOptions,
} from './surface/options.ts'
export type { OptionRule, OptionRules, Resolved } from './surface/options.ts'
export { answerDocument, etagOf, forEveryOrigin, withVary } from './surface/public-document.ts'
export type { PublicDocument } from './surface/public-document.ts'
export { BodyBytes, ReadingTurns } from './surface/reading.ts'
export { ANSWER_LEASE_MS, leaseForAnswer, settlementOf } from './surface/settlements.ts'
export { eventText, SSE_HEADERS } from './surface/sse.ts'
export { LARGE_BODY_BYTES, wholeBody } from './surface/surface.ts'
export { escapedSize, LONG_TEXT_BYTES, LongBytes, TextParts } from './surface/text-parts.ts'
export { LOCAL_HOSTS, MCP_LOCAL_HOSTS, WebPolicy } from './surface/web-policy.ts'
export { spanOf } from './surface/http-exchange.ts'
