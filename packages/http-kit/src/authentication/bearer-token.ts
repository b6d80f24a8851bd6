import type { AuthenticationRequest } from '../authenticator.ts'
import { AuthenticationError, unusable } from '../errors.ts'

/** The longest Authorization header that is read, in characters. */
const MAX_LENGTH = 8_192

const BEARER = /^Bearer +([^\s,]+)$/i

/**
 * Returns the only Authorization header of a request. Two headers are rejected: this server and a proxy might each
 * use a different one.
 * @throws AuthenticationError
 */
export function authorizationHeader({ headers, rawHeaders }: AuthenticationRequest): string {
  const { authorization } = headers
  if (authorization === undefined) throw new AuthenticationError('the request has no Authorization header')
  if (count(rawHeaders, 'authorization') > 1) throw unusable('the request has several Authorization headers; send one')
  if (authorization.length > MAX_LENGTH)
    throw unusable(`the Authorization header is longer than ${MAX_LENGTH} characters`)
  return authorization
}

/**
 * Returns the token of an Authorization header (RFC 6750, section 2.1).
 * @throws AuthenticationError unless the header has the form `Bearer TOKEN`
 */
export function bearerToken(authorization: string): string {
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined) throw unusable('the Authorization header is not of the form Bearer TOKEN')
  return token
}

function count(rawHeaders: readonly string[], name: string): number {
  let found = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i]
    if (header !== undefined && header.length === name.length && header.toLowerCase() === name) found++
  }
  return found
}
