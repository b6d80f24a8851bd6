import type { IncomingHttpHeaders } from 'node:http'

import type { Caller } from '@signalbox/broker-core'
import { ANONYMOUS } from '@signalbox/broker-core'

import type { Role } from './authentication/roles.ts'

/** The part of a request that an authenticator reads; Node's IncomingMessage has it. */
export interface AuthenticationRequest {
  readonly headers: IncomingHttpHeaders
  /** Alternating names and values, with repeated headers. Node drops a second Authorization header from `headers`. */
  readonly rawHeaders: readonly string[]
  /** The connection, for reports of refusals. */
  readonly socket?: { readonly remoteAddress?: string | undefined }
}

/** A verified caller. */
export interface Identity extends Caller {
  /** Expiry of the credentials, in ms since the epoch. Streams opened with them end at that time. */
  readonly expiresAt?: number
  /** The caller's roles as an operator. Absent means none. Check them with `hasRole`. */
  readonly roles?: readonly Role[]
}

/** The port that verifies credentials. Connectors call it once for each request, before they read the body. */
export interface Authenticator {
  /**
   * Returns the caller's identity. Returns synchronously if possible, as for a token that was verified before.
   * @throws AuthenticationError (or rejects with it) for missing or invalid credentials
   */
  authenticate(request: AuthenticationRequest): Identity | Promise<Identity>
  /**
   * `true` if every caller is the anonymous principal. Limits then count callers by their network address.
   * @default false
   */
  readonly anonymous?: boolean
}

/**
 * The authenticator without server authentication: every caller is the anonymous principal.
 */
export const anonymousAuthenticator: Authenticator = { anonymous: true, authenticate: () => ANONYMOUS }

const OPERATOR: Identity = Object.freeze({ ...ANONYMOUS, roles: ['Admin'] as const })

/** The authenticator without control-plane authentication: every caller of the management listener acts as Admin. */
export const anonymousOperator: Authenticator = { anonymous: true, authenticate: () => OPERATOR }
