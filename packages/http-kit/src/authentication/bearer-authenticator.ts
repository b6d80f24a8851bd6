import { createSecretKey, hash } from 'node:crypto'

import type { JWTPayload, JWTVerifyOptions } from 'jose'

import type { AuthenticationRequest, Authenticator, Identity } from '../authenticator.ts'
import { AuthenticationError } from '../errors.ts'
import { secretAlgorithms } from './algorithms.ts'
import { authorizationHeader, bearerToken } from './bearer-token.ts'
import { identityOf } from './identity.ts'
import { jose } from './jose.ts'
import { keySetFile, publicKeyFile } from './key-files.ts'
import type { FindKey, KeyEvents, KeySource } from './key-source.ts'
import type { KeyUrlTimes } from './key-url.ts'
import { KeyUrl } from './key-url.ts'
import { VerifiedTokens } from './verified-tokens.ts'

/** Seconds by which the clocks of issuer and server may differ (S1). */
const LEEWAY_SECONDS = 5

/** A set may hold keys without an id; a token without one is tried with so many of them. */
const MAX_TRIES = 8

/** Where the keys come from: exactly one of the four (S1). */
export type KeyOptions =
  /** The URL of a JSON Web Key Set. */
  | { readonly jwksUrl: string; readonly times?: KeyUrlTimes }
  /** A file with a JSON Web Key Set; read again when it changes. */
  | { readonly jwksFile: string; readonly lookMs?: number }
  /** A PEM file with a public key or a certificate; read again when it changes. */
  | { readonly keyFile: string; readonly lookMs?: number }
  /** A secret shared with whoever makes the tokens: 32 bytes or more. */
  | { readonly secret: string }

export interface BearerAuthenticatorOptions {
  readonly keys: KeyOptions
  /** What tokens may be signed with; must go with the keys. @default what the key takes; of a set RS256, ES256, EdDSA */
  readonly algorithms?: readonly string[]
  /** What the claim `iss` must be. @default anything */
  readonly issuer?: string
  /** What the claim `aud` must hold: one of these. @default anything */
  readonly audience?: readonly string[]
  /** The most verified tokens that are remembered. @default 10000 */
  readonly maxCachedTokens?: number
  readonly hooks?: Partial<KeyEvents>
}

/** Verifies bearer tokens until it is disposed of. */
export type BearerAuthenticator = Authenticator & Disposable

/**
 * Verifies `Authorization: Bearer` tokens, which are JWTs, and names their caller (S1, S2). A token that was verified
 * lately is answered for at once.
 * @throws RangeError, with the option to blame at the start of its message, for keys that cannot be used
 */
export function bearerAuthenticator(options: BearerAuthenticatorOptions): BearerAuthenticator {
  return new TokenVerifier(options)
}

class TokenVerifier implements BearerAuthenticator {
  readonly #keys: KeySource
  readonly #checks: JWTVerifyOptions
  readonly #verified: VerifiedTokens
  /**
   * For each connection the header that was accepted on it last, with its token's hash: clients send the same one with
   * each request, and comparing it costs a tenth of hashing it. It goes with the connection.
   */
  readonly #accepted = new WeakMap<object, { readonly authorization: string; readonly key: string }>()
  /** Verifications under way, so that many requests with one new token cost one. */
  readonly #pending = new Map<string, Promise<Identity>>()
  #version: number

  constructor({ keys, algorithms = [], issuer, audience, maxCachedTokens, hooks = {} }: BearerAuthenticatorOptions) {
    this.#keys = openKeys(keys, algorithms, {
      changed: () => hooks.changed?.(),
      failed: (reason) => hooks.failed?.(reason),
    })
    this.#version = this.#keys.version
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

  /** What other keys have verified counts no more. */
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
          const identity = identityOf(claims)
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

function openKeys(keys: KeyOptions, wanted: readonly string[], events: KeyEvents): KeySource {
  const sources = ['jwksUrl', 'jwksFile', 'keyFile', 'secret'].filter((name) => Object.hasOwn(keys, name))
  // With the keys, so that the first token does not wait for it.
  jose()
  if (sources.length !== 1) throw new RangeError('keys: allowed is exactly one of jwksUrl, jwksFile, keyFile, secret')
  const [source = 'keys'] = sources
  try {
    if ('jwksUrl' in keys) return new KeyUrl(keys.jwksUrl, wanted, events, keys.times)
    if ('jwksFile' in keys) return keySetFile(keys.jwksFile, wanted, events, keys.lookMs)
    if ('keyFile' in keys) return publicKeyFile(keys.keyFile, wanted, events, keys.lookMs)
    return secretKey(keys.secret, wanted)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new RangeError(reason.startsWith('algorithms: ') ? reason : `${source}: ${reason}`, { cause: error })
  }
}

function secretKey(secret: string, wanted: readonly string[]): KeySource {
  const bytes = new TextEncoder().encode(secret)
  const algorithms = secretAlgorithms(bytes.byteLength, wanted)
  const key = createSecretKey(bytes)
  return { algorithms, version: 0, find: async () => key, [Symbol.dispose]() {} }
}

/** The reason is for the log: jose's messages name claims and headers, and no values. */
function refusal(error: unknown): AuthenticationError {
  if (error instanceof AuthenticationError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new AuthenticationError(`the token is refused: ${reason}`, { cause: error })
}
