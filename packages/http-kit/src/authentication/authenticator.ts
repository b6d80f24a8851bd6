import type { IncomingHttpHeaders } from 'node:http'

import { ANONYMOUS, POLICY_ACTIONS } from '@signalbox/broker-core'
import type { Caller, PolicyAction } from '@signalbox/broker-core'
import type { JWTPayload } from 'jose'

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
  readonly expiresAt?: number | undefined
  /** The caller's roles as an operator. Absent means none. Check them with `hasRole`. */
  readonly roles?: readonly Role[] | undefined
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
  readonly anonymous?: boolean | undefined
}

/**
 * The authenticator without server authentication: every caller is the anonymous principal.
 */
export const anonymousAuthenticator: Authenticator = { anonymous: true, authenticate: () => ANONYMOUS }

const OPERATOR: Identity = Object.freeze({ ...ANONYMOUS, roles: ['Admin'] as const })

/** The authenticator without control-plane authentication: every caller of the management listener acts as Admin. */
export const anonymousOperator: Authenticator = { anonymous: true, authenticate: () => OPERATOR }

/** The roles of operators, in rising order. Each role includes those before it. */
export const ROLES = ['ReadOnly', 'ReadWrite', 'Admin'] as const

/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number]

/** Returns `true` if the name is one of {@link ROLES}, in the same letter case. */
export function isRole(name: string): name is Role {
  return ROLES.some((role) => role === name)
}

/** Returns `true` if the caller has this role or a higher one. A caller without roles has none. */
export function hasRole({ roles = [] }: Caller & Pick<Identity, 'roles'>, role: Role): boolean {
  const wanted = ROLES.indexOf(role)
  return roles.some((held) => ROLES.indexOf(held) >= wanted)
}

/** The scopes of access tokens. */
export const SCOPES = ['signalbox:read', 'signalbox:write', 'signalbox:agents', 'signalbox:manage'] as const

/** One of {@link SCOPES}. */
export type Scope = (typeof SCOPES)[number]

/** The scope that each action of the policy needs. No scope includes another. */
const SCOPE_OF: Readonly<Record<PolicyAction, Scope>> = {
  list: 'signalbox:read',
  peek: 'signalbox:read',
  read: 'signalbox:read',
  subscribe: 'signalbox:read',
  send: 'signalbox:write',
  receive: 'signalbox:write',
  respond: 'signalbox:write',
  call: 'signalbox:agents',
  register: 'signalbox:agents',
  manage: 'signalbox:manage',
}

/** Returns the scope that an action needs. */
export function scopeOf(action: PolicyAction): Scope {
  return SCOPE_OF[action]
}

/** Returns the actions that scopes allow. */
export function actionsOf(scopes: ReadonlySet<string>): ReadonlySet<PolicyAction> {
  return new Set(POLICY_ACTIONS.filter((action) => scopes.has(SCOPE_OF[action])))
}

/**
 * Returns the scopes of a token: the claim `scope`, else `scp`, as words in one string or as an array. Other scopes
 * than {@link SCOPES} are included.
 * @param prefix Removed from the start of each scope that has it
 */
export function scopesOf({ scope, scp }: JWTPayload, prefix: string): ReadonlySet<string> {
  const claim = scope ?? scp
  const words: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  const names = words.filter((word) => typeof word === 'string')
  return new Set(names.map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name)))
}
