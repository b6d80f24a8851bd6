import type { JWTPayload } from 'jose'

import type { Identity } from '../authenticator.ts'
import { unusable } from '../errors.ts'
import type { Role } from './roles.ts'
import { isRole } from './roles.ts'
import { actionsOf, scopesOf } from './scopes.ts'

/** The claims that may name the caller; the first that is present is used. */
const CLIENT_CLAIMS = ['ClientID', 'client_id', 'sub'] as const

/** The same for access tokens of OAuth: all users of one program have its `client_id`. */
const USER_CLAIMS = ['ClientID', 'sub', 'client_id'] as const

/** Options for the access tokens of an authorization server (OAuth 2.1). */
export interface OAuthTokenOptions {
  /** A text that the authorization server puts before each scope. A scope without it is accepted too. @default '' */
  readonly scopePrefix?: string
}

const TIME_CLAIMS = ['exp', 'nbf', 'iat'] as const

/** The last second of JavaScript's time. JSON text such as 1e400 is Infinity: a token without an end. */
const MAX_SECONDS = 8_640_000_000_000

const CLIENT_ID = /^[\x21-\x7e]{1,256}$/

/**
 * Returns the caller that verified claims name.
 * @param oauth Makes scopes restrict the caller
 * @throws AuthenticationError without a ClientID of 1 to 256 visible ASCII characters, or with an unusable time
 */
export function identityOf(claims: JWTPayload, oauth?: OAuthTokenOptions): Identity {
  for (const name of TIME_CLAIMS) {
    const time = claims[name]
    if (time === undefined || (typeof time === 'number' && Math.abs(time) <= MAX_SECONDS)) continue
    throw unusable(`the claim ${name} is not a time in seconds; it must be at most ${MAX_SECONDS}`)
  }
  const names = oauth === undefined ? CLIENT_CLAIMS : USER_CLAIMS
  const claim = names.find((name) => claims[name] !== undefined)
  if (claim === undefined)
    throw unusable(`the token does not name its caller; it must have one of the claims ${names.join(', ')}`)
  const clientId = claims[claim]
  if (typeof clientId !== 'string' || !CLIENT_ID.test(clientId)) {
    throw unusable(`the claim ${claim} is not 1 to 256 visible ASCII characters`)
  }
  const actions = oauth && actionsOf(scopesOf(claims, oauth.scopePrefix ?? ''))
  // The user's roles must not reach a program that the user has allowed less.
  const roles = actions === undefined || actions.has('manage') ? rolesOf(claims['roles']) : []
  return {
    clientId,
    ...(claims.exp === undefined ? {} : { expiresAt: claims.exp * 1000 }),
    ...(roles.length > 0 ? { roles } : {}),
    ...(actions === undefined ? {} : { actions }),
  }
}

/** Reads an array, or names separated by spaces. Ignores unknown roles, which may belong to other systems. */
function rolesOf(claim: unknown): readonly Role[] {
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return names.filter((name): name is Role => typeof name === 'string' && isRole(name))
}
