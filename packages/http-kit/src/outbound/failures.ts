import { undici } from './connections.ts'

/**
 * The kinds of failures of a call. Packages have a text for each that contains no address of a name.
 * `closed`: the connection ended before an answer came. `no_socket`: this machine can open no more connections.
 * `not_http`: the received bytes are not HTTP. `other` includes errors without a code, such as a deadline.
 */
export type FailureKind =
  | 'refused'
  | 'closed'
  | 'unknown_host'
  | 'no_route'
  | 'connect_timeout'
  | 'timeout'
  | 'no_socket'
  | 'tls'
  | 'proxy'
  | 'address'
  | 'not_http'
  | 'other'

/** The error codes of Node, undici and this package, by kind. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  UND_ERR_SOCKET: 'closed',
  ENOTFOUND: 'unknown_host',
  EAI_AGAIN: 'unknown_host',
  EHOSTUNREACH: 'no_route',
  ENETUNREACH: 'no_route',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  ETIMEDOUT: 'timeout',
  EADDRNOTAVAIL: 'no_socket',
  EMFILE: 'no_socket',
  AGENT_PROXY_REFUSED: 'proxy',
  AGENT_ADDRESS_REFUSED: 'address',
  ENDPOINT_REFUSED: 'address',
}

const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/

/** The failures of connections that were not established, so nothing was sent on them. */
const UNCONNECTED: ReadonlySet<FailureKind> = new Set([
  'refused',
  'unknown_host',
  'no_route',
  'connect_timeout',
  'no_socket',
  'proxy',
  'address',
])

/** A failed call. */
export interface CallFailure {
  readonly kind: FailureKind
  /** The code of the error; empty without one. */
  readonly code: string
  /** `true` if no connection was established. */
  readonly unconnected: boolean
}

/** Classifies an error of a call. */
export function failureOf(error: unknown): CallFailure {
  const code = codeOf(error)
  const kind = isNoHttp(error) ? 'not_http' : TLS_CODE.test(code) ? 'tls' : (KINDS[code] ?? 'other')
  return { kind, code, unconnected: UNCONNECTED.has(kind) }
}

function codeOf(error: unknown): string {
  // Every address of the host failed, each for its own reason. The first reason is reported.
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

function isNoHttp(error: unknown): boolean {
  const { errors } = undici()
  return (
    error instanceof errors.HTTPParserError ||
    error instanceof errors.HeadersOverflowError ||
    error instanceof errors.ResponseContentLengthMismatchError
  )
}
