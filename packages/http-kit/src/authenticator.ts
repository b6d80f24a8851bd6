import type { IncomingHttpHeaders } from 'node:http'

import type { Caller } from '@signalbox/broker-core'
import { ANONYMOUS } from '@signalbox/broker-core'

import type { Role } from './authentication/roles.ts'

/** What an authenticator sees of a request; node's IncomingMessage is one. */
export interface AuthenticationRequest {
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, repeated headers included: node drops a second Authorization from `headers` (S1). */
  readonly rawHeaders: readonly string[]
  /** Where it came from, for those who report refusals. */
  readonly socket?: { readonly remoteAddress?: string | undefined }
}

/** A verified caller. */
export interface Identity extends Caller {
  /** When the credentials end, milliseconds since the epoch: streams opened with them end then (S9). */
  readonly expiresAt?: number
  /** What the caller may do as an operator (S3); absent is nothing. Ask with `hasRole`. */
  readonly roles?: readonly Role[]
}

/** The port behind which credentials are verified. Connectors ask it once for each request, before they read the body. */
export interface Authenticator {
  /**
   * Answers at once where it can, as for a token it has verified before.
   * @throws AuthenticationError (or rejects with it) when the credentials are missing or not valid
   */
  authenticate(request: AuthenticationRequest): Identity | Promise<Identity>
  /** True where every caller is the anonymous principal: limits then count callers by their network address. @default false */
  readonly anonymous?: boolean
}

/** Server authentication is off: every caller is the anonymous principal (specification, "Authentication" 3). */
export const anonymousAuthenticator: Authenticator = { anonymous: true, authenticate: () => ANONYMOUS }

const OPERATOR: Identity = Object.freeze({ ...ANONYMOUS, roles: ['Admin'] as const })

/** Control-plane authentication is off: everybody who reaches the management listener acts as Admin (S3). */
export const anonymousOperator: Authenticator = { anonymous: true, authenticate: () => OPERATOR }
