export * as argument from './arguments/argument-types.ts'
export { compileArguments } from './arguments/compile-arguments.ts'
export type { CompiledCheck } from './arguments/compile-later.ts'
export { compileLater } from './arguments/compile-later.ts'
export type { ArgumentRule } from './arguments/compile-arguments.ts'
export { argumentProblems, problemsText, shownValue } from './arguments/problems.ts'
export type { ArgumentProblem } from './arguments/problems.ts'
export { AddressList, hostName } from './addresses/address-list.ts'
export { checkedLookup, lookupBy } from './addresses/checked-lookup.ts'
export type { AddressLookup } from './addresses/checked-lookup.ts'
export { ipAddress } from './addresses/ip-address.ts'
export type { IpAddress } from './addresses/ip-address.ts'
export { OwnAddresses, portOf } from './addresses/own-addresses.ts'
export type { ListeningAddress } from './addresses/own-addresses.ts'
export { ALWAYS_REFUSED } from './addresses/refused-addresses.ts'
export { ANONYMOUS_ACCOUNT } from './admission/account.ts'
export { AdmissionControl } from './admission/admission-control.ts'
export type { AdmissionOptions, AdmissionUse, LimitEvent } from './admission/admission-control.ts'
export { HeldBytes } from './admission/held-bytes.ts'
export type { ByteBudget } from './admission/held-bytes.ts'
export { DEFAULT_LIMITS, half } from './admission/limits.ts'
export type { AdmissionLimits, CallerLimits, ProcessLimits } from './admission/limits.ts'
export { derivedLimits } from './admission/memory.ts'
export type { DerivedLimits } from './admission/memory.ts'
export { LIMIT_NAMES, Refusal } from './admission/refusal.ts'
export type { LimitName, RefusalReason, RefusedOutcome } from './admission/refusal.ts'
export { restRefusal } from './admission/rest-refusal.ts'
export type { RestRefusal, RestRefusalCode } from './admission/rest-refusal.ts'
export type { RequestHold } from './admission/request-hold.ts'
export { addressOf, networkOf, PROXY_HEADERS, TrustedProxies } from './admission/trusted-proxies.ts'
export type { ProxyHeader } from './admission/trusted-proxies.ts'
export { bearerAuthenticator } from './authentication/bearer-authenticator.ts'
export type {
  BearerAuthenticator,
  BearerAuthenticatorOptions,
  KeyOptions,
} from './authentication/bearer-authenticator.ts'
export type { OAuthTokenOptions } from './authentication/identity.ts'
export type { KeyEvents } from './authentication/key-source.ts'
export type { KeyUrlTimes } from './authentication/key-url.ts'
export { hasRole, isRole, ROLES } from './authentication/roles.ts'
export type { Role } from './authentication/roles.ts'
export { scopeOf, SCOPES } from './authentication/scopes.ts'
export type { Scope } from './authentication/scopes.ts'
export { anonymousAuthenticator, anonymousOperator } from './authenticator.ts'
export type { AuthenticationRequest, Authenticator, Identity } from './authenticator.ts'
export { baseUrlOf, readPublicUrl } from './base-url.ts'
export type { BaseUrl } from './base-url.ts'
export { DEFAULT_MAX_BODY_BYTES, jsonHeadersProblem, readBody, REFUSED_BODY_BYTES, refuseBody } from './body.ts'
export type { BodyBudget } from './body.ts'
export { canonicalJson } from './canonical-json.ts'
export type { ConnectionCaller } from './endpoint/connection-caller.ts'
export { Endpoint, LARGE_BODY_BYTES } from './endpoint/endpoint.ts'
export { allSteps, FairTurns, fairTurns } from './endpoint/fair-turns.ts'
export type { Steps } from './endpoint/fair-turns.ts'
export type { Admitted, EndpointOptions, FrontDoor } from './endpoint/endpoint.ts'
export { HttpExchange } from './endpoint/http-exchange.ts'
export { LONG_TEXT_BYTES } from './endpoint/long-answer.ts'
export { escapedSize, LongBytes, TextParts } from './endpoint/text-parts.ts'
export { Call, CallEnded, Surface } from './endpoint/surface.ts'
export type { Route, SurfaceOptions } from './endpoint/surface.ts'
export type { Unsettled } from './endpoint/http-exchange.ts'
export { WebPolicy } from './endpoint/web-policy.ts'
export type { AllowedHosts } from './endpoint/web-policy.ts'
export { CONNECTOR_OPTION_TYPES, createConnector, DEFAULT_DRAIN_MS } from './connector.ts'
export type { Connector, ConnectorOptions, ConnectorParts, NodeHandler } from './connector.ts'
export { CORS_DEFAULTS, fastifyCorsOptions } from './cors.ts'
export type { CorsSettings, FastifyCorsOptions } from './cors.ts'
export { download } from './download.ts'
export type { DownloadOptions } from './download.ts'
export { AuthenticationError, authenticationFailed, BodyRefused, JsonRpcError } from './errors.ts'
export type { JsonRpcErrorOptions } from './errors.ts'
export { serveFetch } from './fetch/serve-fetch.ts'
export type { FetchContext } from './fetch/serve-fetch.ts'
export { hopsOf, hopsProblem, MAX_AGENT_HOPS } from './hops.ts'
export type { HttpConnection, HttpHandler, HttpRequest, HttpResponse } from './http-message.ts'
export { InFlight } from './in-flight.ts'
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
} from './json.ts'
export type { JsonLimits, JsonObject, JsonProblem, ParsedJson } from './json.ts'
export { errorText, internalError, jsonRpcErrorText, successText } from './json-rpc/answer.ts'
export { JSON_RPC_CODES } from './json-rpc/codes.ts'
export type { JsonRpcCode } from './json-rpc/codes.ts'
export { idKey, isIdText } from './json-rpc/id.ts'
export { JsonRpcExchange } from './json-rpc/json-rpc-exchange.ts'
export { parseJsonRpc, readRequestHead, readRequestId, scanJsonRpc } from './json-rpc/message.ts'
export type {
  JsonRpcLimits,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
  RequestHead,
  ScannedMessage,
} from './json-rpc/message.ts'
export { isJson } from './json-rpc/valid-json.ts'
export { elementTexts, memberText, scanJson, scanJsonInSteps } from './json-rpc/scan.ts'
export type { ExceededLimit, MemberSink, Scan, ScanLimits } from './json-rpc/scan.ts'
export { ANSWER_LEASE_MS, leaseForAnswer, settlementOf } from './leased-answer.ts'
export {
  bodyText,
  isoTime,
  longBodyText,
  longMessageShape,
  messageShape,
  messageSizeInJson,
  storedEventShape,
} from './message-shape.ts'
export type { BodyText, LongBodyText } from './message-shape.ts'
export { NameResolver, resolveBySystem } from './names/name-resolver.ts'
export type { NameResolverOptions, ResolveHost } from './names/name-resolver.ts'
export { OpenStreams } from './open-streams.ts'
export { LOCAL_HOSTS, MCP_LOCAL_HOSTS, originPolicy, parseTrustedOrigins } from './origin.ts'
export type { OriginPolicy, OriginPolicyOptions, TrustedOrigins } from './origin.ts'
export { answerDocument, etagOf, forEveryOrigin, withVary } from './public-document.ts'
export type { PublicDocument } from './public-document.ts'
export { compileQuery, parameterProblemsText } from './query/parameters.ts'
export type { ParameterProblem } from './query/parameters.ts'
export { KEY_BYTES, openKeyFile, SecretBox } from './secrets/secret-box.ts'
export { Settlements } from './settlements.ts'
export type { Settlement } from './settlements.ts'
export { eventText, SSE_HEADERS, SSE_KEEPALIVE_MS, SseStream } from './sse.ts'
export type { SseEnd, SseEvent, SseOptions } from './sse.ts'
export { failureHook, quietHook } from './report-failure.ts'
export { parseTimestamp, timestampRefusal } from './timestamp.ts'
export { secretIn } from './authentication/secret.ts'
export { watchFiles } from './watched-files.ts'
export type { FileWatchOptions, WatchedFiles } from './watched-files.ts'

export { AnswerRelay } from './answers/answer-relay.ts'
export { PendingRequests } from './answers/pending-requests.ts'
export type { AwaitedReply } from './answers/pending-requests.ts'
