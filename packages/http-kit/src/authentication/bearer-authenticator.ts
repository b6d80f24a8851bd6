import { hash } from 'node:crypto'

import type { JWTPayload, JWTVerifyOptions } from 'jose'

import { AuthenticationError, unusable } from '../errors.ts'
import type { ResolveHost } from '../names/name-resolver.ts'
import { actionsOf, isRole, scopesOf } from './authenticator.ts'
import type { AuthenticationRequest, Authenticator, Identity, Role } from './authenticator.ts'
import { KeyUrl } from './key-url.ts'
import type { KeyUrlTimes } from './key-url.ts'
import { jose, keySetFile, publicKeyFile, secretFile, secretKey } from './keys.ts'
import type { FindKey, KeyEvents, KeySource } from './keys.ts'

/** Allowed difference between the clocks of issuer and server, in seconds. */
const LEEWAY_SECONDS = 5

/** The most keys that are tried for a token without a key id, if keys of the set have no id either. */
const MAX_TRIES = 8

/** The source of the keys: exactly one. */
export type KeyOptions =
  /** The URL of a JSON Web Key Set. */
  | {
      readonly jwksUrl: string
      readonly times?: KeyUrlTimes
      /** Resolves the host of the URL. @default the name servers of the system, by `resolveBySystem` */
      readonly resolve?: ResolveHost
    }
  /** A file with a JSON Web Key Set. It is read again when it changes. */
  | { readonly jwksFile: string; readonly lookMs?: number }
  /** A PEM file with a public key or a certificate. It is read again when it changes. */
  | { readonly keyFile: string; readonly lookMs?: number }
  /** A secret shared with the issuer of the tokens: 32 bytes or more. */
  | { readonly secret: string }
  /** A file with such a secret; one newline at its end is ignored. It is read again when it changes. */
  | { readonly secretFile: string; readonly lookMs?: number }

/** Options of {@link bearerAuthenticator}. */
export interface BearerAuthenticatorOptions {
  readonly keys: KeyOptions
  /**
   * The allowed signature algorithms. They must fit the keys.
   * @default the algorithm of the key; for a key set RS256, ES256, EdDSA
   */
  readonly algorithms?: readonly string[]
  /** The required value of the claim `iss`. @default any value */
  readonly issuer?: string
  /** The allowed values of the claim `aud`; one is enough. @default any value */
  readonly audience?: readonly string[]
  /**
   * Makes the scopes of tokens restrict their callers, and `sub` name the caller before `client_id`.
   * @default scopes have no effect
   */
  readonly oauth?: OAuthTokenOptions
  /** The most verified tokens that are cached. @default 10000 */
  readonly maxCachedTokens?: number
  readonly hooks?: Partial<KeyEvents>
}

/** An authenticator for bearer tokens. Dispose of it to stop watching or fetching keys. */
export type BearerAuthenticator = Authenticator & Disposable

/**
 * Returns an authenticator that verifies `Authorization: Bearer` tokens (JWT) and names their caller. A cached token
 * is answered synchronously.
 * @throws RangeError for unusable keys; the message starts with the name of the option
 */
export function bearerAuthenticator(options: BearerAuthenticatorOptions): BearerAuthenticator {
  return new TokenVerifier(options)
}

class TokenVerifier implements BearerAuthenticator {
  readonly #keys: KeySource
  readonly #checks: JWTVerifyOptions
  readonly #oauth: OAuthTokenOptions | undefined
  readonly #verified: VerifiedTokens
  /**
   * For each connection, the last accepted header and the hash of its token. Clients send the same header with each
   * request, and comparing it costs a tenth of hashing it.
   */
  readonly #accepted = new WeakMap<object, { readonly authorization: string; readonly key: string }>()
  /** Verifications in progress, so that simultaneous requests with one new token verify it once. */
  readonly #pending = new Map<string, Promise<Identity>>()
  #version: number

  constructor(options: BearerAuthenticatorOptions) {
    const { keys, algorithms = [], issuer, audience, oauth, maxCachedTokens, hooks = {} } = options
    this.#keys = openKeys(keys, algorithms, {
      changed: () => hooks.changed?.(),
      failed: (reason) => hooks.failed?.(reason),
    })
    this.#version = this.#keys.version
    this.#oauth = oauth
    this.#verified = new VerifiedTokens(maxCachedTokens)
    this.#checks = {
      requiredClaims: ['exp'],
      clockTolerance: LEEWAY_SECONDS,
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience === undefined ? {} : { audience: [...audience] }),
    }
  }

  authenticate(request: AuthenticationRequest): Identity | Promise<Identity> {
    const authorization = authorizationHeader(request)
    this.#forgetWhenKeysChanged()
    const { socket } = request
    const accepted = socket && this.#accepted.get(socket)
    const known = accepted?.authorization === authorization ? this.#verified.get(accepted.key) : undefined
    if (known !== undefined) return known
    const token = bearerToken(authorization)
    const key = hash('sha256', token, 'base64')
    const identity = this.#verified.get(key)
    if (identity === undefined) return this.#pending.get(key) ?? this.#verify(token, key)
    if (socket) this.#accepted.set(socket, { authorization, key })
    return identity
  }

  [Symbol.dispose](): void {
    this.#keys[Symbol.dispose]()
  }

  /** Forgets every verification that used earlier keys. */
  #forgetWhenKeysChanged(): void {
    if (this.#version === this.#keys.version) return
    this.#version = this.#keys.version
    this.#verified.clear()
    this.#pending.clear()
  }

  #verify(token: string, key: string): Promise<Identity> {
    const { version } = this.#keys
    const verification = this.#claimsOf(token)
      .then(
        (claims) => {
          const identity = identityOf(claims, this.#oauth)
          if (version === this.#keys.version) this.#verified.add(key, identity)
          return identity
        },
        (error: unknown) => {
          throw refusal(error)
        },
      )
      .finally(() => {
        if (this.#pending.get(key) === verification) this.#pending.delete(key)
      })
    this.#pending.set(key, verification)
    return verification
  }

  async #claimsOf(token: string): Promise<JWTPayload> {
    const checks = { ...this.#checks, algorithms: [...this.#keys.algorithms] }
    try {
      return await claims(token, this.#keys.find, checks)
    } catch (error) {
      const { errors } = jose()
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      let tries = 0
      for await (const candidate of error) {
        if (++tries > MAX_TRIES) break
        try {
          return await claims(token, async () => candidate, checks)
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
        }
      }
      throw new errors.JWSSignatureVerificationFailed()
    }
  }
}

async function claims(token: string, find: FindKey, checks: JWTVerifyOptions): Promise<JWTPayload> {
  const { payload } = await jose().jwtVerify(token, find, checks)
  return payload
}

const SOURCES = ['jwksUrl', 'jwksFile', 'keyFile', 'secret', 'secretFile']

function openKeys(keys: KeyOptions, wanted: readonly string[], events: KeyEvents): KeySource {
  const sources = SOURCES.filter((name) => Object.hasOwn(keys, name))
  // Loaded together with the keys, so that the first token does not wait for it.
  jose()
  if (sources.length !== 1) throw new RangeError(`keys: allowed is exactly one of ${SOURCES.join(', ')}`)
  const [source = 'keys'] = sources
  try {
    if ('jwksUrl' in keys) return new KeyUrl(keys.jwksUrl, wanted, events, keys.times, keys.resolve)
    if ('jwksFile' in keys) return keySetFile(keys.jwksFile, wanted, events, keys.lookMs)
    if ('keyFile' in keys) return publicKeyFile(keys.keyFile, wanted, events, keys.lookMs)
    if ('secretFile' in keys) return secretFile(keys.secretFile, wanted, events, keys.lookMs)
    const { algorithms, find } = secretKey(keys.secret, wanted)
    return { algorithms, version: 0, find, [Symbol.dispose]() {} }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new RangeError(reason.startsWith('algorithms: ') ? reason : `${source}: ${reason}`, { cause: error })
  }
}

/** Converts an error of jose to one of a few reasons: a log that lists each must not depend on the text of a token. */
function refusal(error: unknown): AuthenticationError {
  if (error instanceof AuthenticationError) return error
  const description = reasonOf(error)
  return new AuthenticationError(`the token is not valid: ${description}`, { cause: error, description })
}

function reasonOf(error: unknown): string {
  const { errors } = jose()
  if (error instanceof errors.JWTExpired) return 'it has expired (exp)'
  if (error instanceof errors.JWTClaimValidationFailed) return CLAIM_REASONS[error.claim] ?? 'a claim is not valid'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature does not fit the key'
  if (error instanceof errors.JWKSNoMatchingKey) return 'the server has no key for it (kid, alg)'
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm is not allowed (alg)'
  if (error instanceof errors.JOSENotSupported) return 'it needs a feature that the server does not have (alg, crit)'
  return error instanceof errors.JOSEError ? 'it is not a signed JWT' : 'the keys are not available'
}

const CLAIM_REASONS: Readonly<Record<string, string>> = {
  aud: 'it is for another resource (aud)',
  iss: 'it is of another issuer (iss)',
  exp: 'it has no valid end (exp)',
  nbf: 'it is not valid yet (nbf)',
}

/** The longest Authorization header that is read, in characters. */
const MAX_LENGTH = 8_192

const BEARER = /^Bearer +([^\s,]+)$/i

/**
 * Returns the only Authorization header of a request. Two headers are rejected: this server and a proxy might each
 * use a different one.
 * @throws AuthenticationError
 */
function authorizationHeader({ headers, rawHeaders }: AuthenticationRequest): string {
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
function bearerToken(authorization: string): string {
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

/** Time that a verification is cached, in ms. */
const MAX_AGE_MS = 300_000

const DEFAULT_LIMIT = 10_000

interface Verified {
  readonly identity: Identity
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** Recently verified tokens, by their hash. The tokens are not stored. */
class VerifiedTokens {
  readonly #limit: number
  /** Entries in the order of verification. */
  readonly #tokens = new Map<string, Verified>()

  /** @param limit The most tokens that are cached; the oldest is dropped for a new one */
  constructor(limit = DEFAULT_LIMIT) {
    this.#limit = limit
  }

  get size(): number {
    return this.#tokens.size
  }

  get(hash: string): Identity | undefined {
    const verified = this.#tokens.get(hash)
    if (verified === undefined) return undefined
    if (Date.now() < verified.until) return verified.identity
    this.#tokens.delete(hash)
    return undefined
  }

  add(hash: string, identity: Identity): void {
    const { expiresAt = 0 } = identity
    this.#tokens.delete(hash)
    this.#tokens.set(hash, { identity, until: Math.min(expiresAt, Date.now() + MAX_AGE_MS) })
    if (this.#tokens.size <= this.#limit) return
    const [oldest] = this.#tokens.keys()
    if (oldest !== undefined) this.#tokens.delete(oldest)
  }

  clear(): void {
    this.#tokens.clear()
  }
}

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
function identityOf(claims: JWTPayload, oauth?: OAuthTokenOptions): Identity {
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
    expiresAt: claims.exp === undefined ? undefined : claims.exp * 1000,
    roles: roles.length > 0 ? roles : undefined,
    actions,
  }
}

/** Reads an array, or names separated by spaces. Ignores unknown roles, which may belong to other systems. */
function rolesOf(claim: unknown): readonly Role[] {
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return names.filter((name): name is Role => typeof name === 'string' && isRole(name))
}
