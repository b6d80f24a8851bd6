import type { JWTPayload } from 'jose'

import type { Identity } from '../authenticator.ts'
import { AuthenticationError } from '../errors.ts'
import type { Role } from './roles.ts'
import { isRole } from './roles.ts'

/** The claims that may name the caller; the first that is present is used. */
const CLIENT_CLAIMS = ['ClientID', 'client_id', 'sub'] as const

const CLIENT_ID = /^[\x21-\x7e]{1,256}$/

/**
 * Returns the caller that verified claims name.
 * @throws AuthenticationError without a ClientID of 1 to 256 visible ASCII characters
 */
export function identityOf(claims: JWTPayload): Identity {
  const claim = CLIENT_CLAIMS.find((name) => claims[name] !== undefined)
  if (claim === undefined) throw new AuthenticationError(`the token has none of the claims ${CLIENT_CLAIMS.join(', ')}`)
  const clientId = claims[claim]
  if (typeof clientId !== 'string' || !CLIENT_ID.test(clientId)) {
    throw new AuthenticationError(`the claim ${claim} is not 1 to 256 visible ASCII characters`)
  }
  const roles = rolesOf(claims['roles'])
  return {
    clientId,
    ...(claims.exp === undefined ? {} : { expiresAt: claims.exp * 1000 }),
    ...(roles.length > 0 ? { roles } : {}),
  }
}

/** Reads an array, or names separated by spaces. Ignores unknown roles, which may belong to other systems. */
function rolesOf(claim: unknown): readonly Role[] {
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return names.filter((name): name is Role => typeof name === 'string' && isRole(name))
}
