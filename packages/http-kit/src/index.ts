export * as argument from './arguments/argument-types.ts'
export { argumentProblems, problemsText, shownValue } from './arguments/problems.ts'
export type { ArgumentProblem } from './arguments/problems.ts'
export { authenticate, readRefusedId } from './authenticate.ts'
export { bearerAuthenticator } from './authentication/bearer-authenticator.ts'
export type {
  BearerAuthenticator,
  BearerAuthenticatorOptions,
  KeyOptions,
} from './authentication/bearer-authenticator.ts'
export type { KeyEvents } from './authentication/key-source.ts'
export type { KeyUrlTimes } from './authentication/key-url.ts'
export { hasRole, isRole, ROLES } from './authentication/roles.ts'
export type { Role } from './authentication/roles.ts'
export { anonymousAuthenticator, anonymousOperator } from './authenticator.ts'
export type { AuthenticationRequest, Authenticator, Identity } from './authenticator.ts'
export { DEFAULT_MAX_BODY_BYTES, jsonHeadersProblem, readBody, REFUSED_BODY_BYTES, refuseBody } from './body.ts'
export { CORS_DEFAULTS, fastifyCorsOptions } from './cors.ts'
export type { CorsSettings, FastifyCorsOptions } from './cors.ts'
export { AuthenticationError, authenticationFailed, JsonRpcError } from './errors.ts'
export type { JsonRpcErrorOptions } from './errors.ts'
export { isUnreadableContentType, leaveBodiesUnread, takeOver } from './fastify.ts'
export { InFlight } from './in-flight.ts'
export { errorText, internalError, jsonRpcErrorText, successText } from './json-rpc/answer.ts'
export { JSON_RPC_CODES } from './json-rpc/codes.ts'
export type { JsonRpcCode } from './json-rpc/codes.ts'
export { idKey, isIdText } from './json-rpc/id.ts'
export { MAX_JSON_DEPTH, MAX_JSON_KEYS, parseJsonRpc, readRequestId } from './json-rpc/message.ts'
export type {
  JsonObject,
  JsonRpcLimits,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
} from './json-rpc/message.ts'
export { elementTexts, memberText, scanJson } from './json-rpc/scan.ts'
export type { MemberSink, ScanLimits } from './json-rpc/scan.ts'
export { ANSWER_LEASE_MS, leaseForAnswer, settlementOf } from './leased-answer.ts'
export { bodyText, isoTime, messageShape, storedEventShape } from './message-shape.ts'
export type { BodyText } from './message-shape.ts'
export { OpenStreams } from './open-streams.ts'
export { LOCAL_HOSTS, MCP_LOCAL_HOSTS, originPolicy, originRefused, parseTrustedOrigins } from './origin.ts'
export type { OriginPolicy, OriginPolicyOptions, TrustedOrigins } from './origin.ts'
export { compileQuery, parameterProblemsText, shownParameter } from './query/parameters.ts'
export type { ParameterProblem } from './query/parameters.ts'
export { Settlements } from './settlements.ts'
export type { Settlement } from './settlements.ts'
export { eventText, SSE_HEADERS, SSE_KEEPALIVE_MS, SseStream } from './sse.ts'
export type { SseEnd, SseEvent, SseOptions } from './sse.ts'
export { parseTimestamp, TIMESTAMP_FORM } from './timestamp.ts'
export { watchFiles } from './watched-files.ts'
export type { FileWatchOptions, WatchedFiles } from './watched-files.ts'
