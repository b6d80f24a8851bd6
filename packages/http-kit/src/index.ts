export { AdmissionControl } from './admission/admission-control.ts'
export type { AdmissionOptions, AdmissionUse, LimitEvent } from './admission/admission-control.ts'
export { DEFAULT_LIMITS, LIMIT_NAMES } from './admission/limits.ts'
export type { AdmissionLimits, CallerLimits, LimitName, ProcessLimits } from './admission/limits.ts'
export { Refusal } from './admission/refusal.ts'
export type { RefusalReason, RefusedOutcome } from './admission/refusal.ts'
export type { ByteBudget, RequestHold } from './admission/request-hold.ts'
export { PROXY_HEADERS, TrustedProxies } from './admission/trusted-proxies.ts'
export type { ProxyHeader } from './admission/trusted-proxies.ts'
export {
  anonymousAuthenticator,
  anonymousOperator,
  hasRole,
  isRole,
  ROLES,
  scopeOf,
  SCOPES,
} from './authentication/authenticator.ts'
export type { AuthenticationRequest, Authenticator, Identity, Role, Scope } from './authentication/authenticator.ts'
export { bearerAuthenticator } from './authentication/bearer-authenticator.ts'
export type {
  BearerAuthenticator,
  BearerAuthenticatorOptions,
  KeyOptions,
  OAuthTokenOptions,
} from './authentication/bearer-authenticator.ts'
export type { KeyUrlTimes } from './authentication/key-url.ts'
export type { KeyEvents } from './authentication/keys.ts'
export { AuthenticationError, JSON_RPC_CODES, JsonRpcError } from './errors.ts'
export type { JsonRpcCode, JsonRpcErrorOptions } from './errors.ts'
export { parseJsonRpc } from './json/json-rpc.ts'
export type {
  JsonRpcLimits,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
} from './json/json-rpc.ts'
export type { JsonObject } from './json/json.ts'
export type { ResolveHost } from './names/name-resolver.ts'
export { DEFAULT_MAX_BODY_BYTES } from './surface/body.ts'
export type { ConnectionCaller } from './surface/caller.ts'
export type { Connector, NodeHandler } from './surface/connector.ts'
export type { FrontDoor } from './surface/gate.ts'
export type { Steps } from './surface/fair-turns.ts'
export { serveFetch } from './surface/fetch.ts'
export type { FetchContext } from './surface/fetch.ts'
export { HttpExchange } from './surface/http-exchange.ts'
export type { RequestSpan, Unsettled } from './surface/http-exchange.ts'
export type { HttpConnection, HttpHandler, HttpRequest, HttpResponse } from './surface/http-message.ts'
export type { ConnectorOptions } from './surface/options.ts'
export { Settlements } from './surface/settlements.ts'
export type { Settlement } from './surface/settlements.ts'
export { SSE_KEEPALIVE_MS, SseStream } from './surface/sse.ts'
export type { SseEnd, SseEvent, SseOptions } from './surface/sse.ts'
export { Call, CallEnded, Surface } from './surface/surface.ts'
export type { Route, SurfaceOptions } from './surface/surface.ts'
export { CORS_DEFAULTS, fastifyCorsOptions, originPolicy, parseTrustedOrigins } from './surface/web-policy.ts'
export type {
  AllowedHosts,
  CorsSettings,
  FastifyCorsOptions,
  OriginPolicy,
  OriginPolicyOptions,
  TrustedOrigins,
} from './surface/web-policy.ts'
export { watchFiles } from './watched-files.ts'
export type { FileWatchOptions, WatchedFiles } from './watched-files.ts'
