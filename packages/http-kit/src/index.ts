export * as argument from './schema/argument-types.ts'
export { compileArguments } from './schema/compile-arguments.ts'
export type { CompiledCheck } from './schema/compile-arguments.ts'
export { compileLater } from './schema/compile-arguments.ts'
export type { ArgumentRule } from './schema/compile-arguments.ts'
export { argumentProblems, problemsText, shownValue } from './schema/compile-arguments.ts'
export type { ArgumentProblem } from './schema/compile-arguments.ts'
export type { ListeningAddress } from './outbound/address-policy.ts'
export { ANONYMOUS_ACCOUNT } from './admission/admission-control.ts'
export { AdmissionControl } from './admission/admission-control.ts'
export type { AdmissionOptions, AdmissionUse, LimitEvent } from './admission/admission-control.ts'
export { HeldBytes } from './admission/request-hold.ts'
export type { ByteBudget } from './admission/request-hold.ts'
export { DEFAULT_LIMITS, half } from './admission/limits.ts'
export type { AdmissionLimits, CallerLimits, ProcessLimits } from './admission/limits.ts'
export { derivedLimits } from './admission/limits.ts'
export type { DerivedLimits } from './admission/limits.ts'
export { LIMIT_NAMES, Refusal } from './admission/refusal.ts'
export type { LimitName, RefusalReason, RefusedOutcome } from './admission/refusal.ts'
export { restRefusal } from './admission/refusal.ts'
export type { RestRefusal, RestRefusalCode } from './admission/refusal.ts'
export type { RequestHold } from './admission/request-hold.ts'
export { addressOf, networkOf, PROXY_HEADERS, TrustedProxies } from './admission/trusted-proxies.ts'
export type { ProxyHeader } from './admission/trusted-proxies.ts'
export { bearerAuthenticator } from './authentication/bearer-authenticator.ts'
export type {
  BearerAuthenticator,
  BearerAuthenticatorOptions,
  KeyOptions,
} from './authentication/bearer-authenticator.ts'
export type { OAuthTokenOptions } from './authentication/bearer-authenticator.ts'
export type { KeyEvents } from './authentication/keys.ts'
export type { KeyUrlTimes } from './authentication/key-url.ts'
export { hasRole, isRole, ROLES } from './authentication/authenticator.ts'
export type { Role } from './authentication/authenticator.ts'
export { scopeOf, SCOPES } from './authentication/authenticator.ts'
export type { Scope } from './authentication/authenticator.ts'
export { anonymousAuthenticator, anonymousOperator } from './authentication/authenticator.ts'
export type { AuthenticationRequest, Authenticator, Identity } from './authentication/authenticator.ts'
export { baseUrlOf, readPublicUrl } from './base-url.ts'
export type { BaseUrl } from './base-url.ts'
export { DEFAULT_MAX_BODY_BYTES, jsonHeadersProblem, readBody, REFUSED_BODY_BYTES, refuseBody } from './surface/body.ts'
export type { BodyBudget } from './surface/body.ts'
export { canonicalJson } from './json/json.ts'
export type { ConnectionCaller } from './surface/endpoint.ts'
export { Endpoint, LARGE_BODY_BYTES } from './surface/endpoint.ts'
export { allSteps, FairTurns, fairTurns } from './surface/fair-turns.ts'
export type { Steps } from './surface/fair-turns.ts'
export type { Admitted, EndpointOptions, FrontDoor } from './surface/endpoint.ts'
export { HttpExchange } from './surface/http-exchange.ts'
export { LONG_TEXT_BYTES } from './surface/text-parts.ts'
export { escapedSize, LongBytes, TextParts } from './surface/text-parts.ts'
export { Call, CallEnded, Surface } from './surface/surface.ts'
export type { Route, SurfaceOptions } from './surface/surface.ts'
export type { Unsettled } from './surface/http-exchange.ts'
export { WebPolicy } from './surface/web-policy.ts'
export type { AllowedHosts } from './surface/web-policy.ts'
export { createConnector } from './surface/connector.ts'
export {
  CONNECTOR_OPTION_TYPES,
  CONNECTOR_OPTIONS,
  DEFAULT_DRAIN_MS,
  MAX_TIMER_MS,
  resolveOptions,
} from './surface/options.ts'
export type { ConnectorOptions, OptionRule, OptionRules, Resolved } from './surface/options.ts'
export type { Connector, ConnectorParts, NodeHandler } from './surface/connector.ts'
export { CORS_DEFAULTS, fastifyCorsOptions } from './surface/web-policy.ts'
export type { CorsSettings, FastifyCorsOptions } from './surface/web-policy.ts'
export { AuthenticationError, authenticationFailed, BodyRefused, JsonRpcError } from './errors.ts'
export type { JsonRpcErrorOptions } from './errors.ts'
export { serveFetch } from './surface/fetch.ts'
export type { FetchContext } from './surface/fetch.ts'
export { hopsOf, hopsProblem, MAX_AGENT_HOPS } from './surface/http-message.ts'
export type { HttpConnection, HttpHandler, HttpRequest, HttpResponse } from './surface/http-message.ts'
export { InFlight } from './surface/in-flight.ts'
export {
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
export type { JsonLimits, JsonObject, JsonProblem, ParsedJson } from './json/json.ts'
export { errorText, internalError, jsonRpcErrorText, successText } from './json/json-rpc.ts'
export { JSON_RPC_CODES } from './errors.ts'
export type { JsonRpcCode } from './errors.ts'
export { idKey, isIdText } from './json/json-rpc.ts'
export { JsonRpcExchange } from './json/json-rpc-exchange.ts'
export { parseJsonRpc, readRequestHead, readRequestId, scanJsonRpc } from './json/json-rpc.ts'
export type {
  JsonRpcLimits,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
  RequestHead,
  ScannedMessage,
} from './json/json-rpc.ts'
export { isJson } from './json/scan.ts'
export { elementTexts, memberText, scanJson, scanJsonInSteps } from './json/scan.ts'
export type { ExceededLimit, MemberSink, Scan, ScanLimits } from './json/scan.ts'
export { ANSWER_LEASE_MS, leaseForAnswer, settlementOf } from './surface/settlements.ts'
export {
  bodyText,
  isoTime,
  longBodyText,
  longMessageShape,
  messageShape,
  messageSizeInJson,
  storedEventShape,
} from './schema/message-shape.ts'
export type { BodyText, LongBodyText } from './schema/message-shape.ts'
export { NameResolver, resolveBySystem } from './names/name-resolver.ts'
export type { NameResolverOptions, ResolveHost } from './names/name-resolver.ts'
export { OpenStreams } from './surface/in-flight.ts'
export { LOCAL_HOSTS, MCP_LOCAL_HOSTS, originPolicy, parseTrustedOrigins } from './surface/web-policy.ts'
export type { OriginPolicy, OriginPolicyOptions, TrustedOrigins } from './surface/web-policy.ts'
export { answerDocument, etagOf, forEveryOrigin, withVary } from './surface/public-document.ts'
export type { PublicDocument } from './surface/public-document.ts'
export { compileQuery, parameterProblemsText } from './schema/compile-query.ts'
export type { ParameterProblem } from './schema/compile-query.ts'
export { KEY_BYTES, openKeyFile, SecretBox } from './secrets/secret-box.ts'
export { Settlements } from './surface/settlements.ts'
export type { Settlement } from './surface/settlements.ts'
export { eventText, SSE_HEADERS, SSE_KEEPALIVE_MS, SseStream } from './surface/sse.ts'
export type { SseEnd, SseEvent, SseOptions } from './surface/sse.ts'
export { failureHook, quietHook } from './surface/connector.ts'
export { parseTimestamp, timestampRefusal } from './schema/message-shape.ts'
export { secretIn } from './authentication/keys.ts'
export { watchFiles } from './watched-files.ts'
export type { FileWatchOptions, WatchedFiles } from './watched-files.ts'

export { AnswerRelay } from './surface/answer-relay.ts'
export { PendingRequests } from './surface/answer-relay.ts'
export type { AwaitedReply } from './surface/answer-relay.ts'
