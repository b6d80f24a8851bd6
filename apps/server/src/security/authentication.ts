import type { AuthenticationRequest, Authenticator, Identity, KeyOptions, ResolveHost } from '@signalbox/http-kit'
import {
  anonymousAuthenticator,
  anonymousOperator,
  AuthenticationError,
  bearerAuthenticator,
} from '@signalbox/http-kit'
import { addressOf, Refusals } from '@signalbox/http-kit/internal'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { NotifySecurity } from './events.ts'

/** The authenticators of both listeners. */
export interface Authentication extends Disposable {
  readonly shared: Authenticator
  /**
   * While control-plane authentication is off, every caller of the management listener acts as
   * Admin (S3).
   */
  readonly management: Authenticator
}

/** Called for every verified caller. */
export type OnVerified = (request: AuthenticationRequest, identity: Identity) => void

export interface AuthenticationReports {
  readonly notify: NotifySecurity
  /** Resolves the host of a key set. */
  readonly resolve: ResolveHost
  readonly verified?: OnVerified | undefined
  /**
   * Called for every refusal on the shared listener, with the caller's address. The management API
   * audits its own refusals.
   */
  readonly refused?: (address: string) => void
}

/**
 * Opens the authenticators of the configuration.
 * @throws ServerError CONFIG_INVALID for keys that cannot be used
 */
export function openAuthentication(
  config: Config,
  { notify, resolve, verified, refused }: AuthenticationReports,
): Authentication {
  const { authentication, api } = config
  if (!authentication.enable && !api.authentication.enable) {
    const shared = verified === undefined ? anonymousAuthenticator : observed(anonymousAuthenticator, verified)
    return { shared, management: anonymousOperator, [Symbol.dispose]() {} }
  }
  const bearer = openBearer(config.authentication, notify, resolve)
  const refusals = new Refusals((refusal) => notify({ kind: 'authentication.failed', ...refusal }))
  const count = (address: string, reason: string): void => refusals.add(address, reason)
  const countAndTell = (address: string, reason: string): void => {
    count(address, reason)
    refused?.(address)
  }
  return {
    shared: authentication.enable ? observed(bearer, verified, countAndTell) : anonymousAuthenticator,
    management: api.authentication.enable ? observed(bearer, verified, count) : anonymousOperator,
    [Symbol.dispose]() {
      bearer[Symbol.dispose]()
      refusals[Symbol.dispose]()
    },
  }
}

function openBearer(
  settings: Config['authentication'],
  notify: NotifySecurity,
  resolve: ResolveHost,
): Authenticator & Disposable {
  const { algorithms, issuer, audience, oauth } = settings
  try {
    return bearerAuthenticator({
      keys: keysOf(settings, resolve),
      algorithms,
      ...(issuer === '' ? {} : { issuer }),
      ...(audience.length === 0 ? {} : { audience }),
      ...(oauth.enable ? { oauth: { scopePrefix: oauth.scopePrefix } } : {}),
      hooks: {
        changed: () => notify({ kind: 'keys.reloaded' }),
        failed: (reason) => notify({ kind: 'keys.failed', reason }),
      },
    })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ServerError('CONFIG_INVALID', [`authentication.${error.message}`], { cause: error })
  }
}

function keysOf(
  { jwksUrl, jwksFile, keyFile, secret, secretFile }: Config['authentication'],
  resolve: ResolveHost,
): KeyOptions {
  if (jwksUrl !== '') return { jwksUrl, resolve }
  if (jwksFile !== '') return { jwksFile }
  if (keyFile !== '') return { keyFile }
  return secretFile === '' ? { secret } : { secretFile }
}

/** Wraps an authenticator to report its results. */
function observed(
  authenticator: Authenticator,
  verified?: OnVerified,
  refuse?: (address: string, reason: string) => void,
): Authenticator {
  const refused = (request: AuthenticationRequest, error: unknown): unknown => {
    if (error instanceof AuthenticationError) refuse?.(addressOf(request) ?? 'unknown', error.message)
    return error
  }
  return {
    anonymous: authenticator.anonymous,
    authenticate(request) {
      let identity: Identity | Promise<Identity>
      try {
        identity = authenticator.authenticate(request)
      } catch (error) {
        throw refused(request, error)
      }
      if (!(identity instanceof Promise)) {
        verified?.(request, identity)
        return identity
      }
      return identity.then(
        (one) => {
          verified?.(request, one)
          return one
        },
        (error: unknown) => {
          throw refused(request, error)
        },
      )
    },
  }
}
