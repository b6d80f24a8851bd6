import type { Server } from 'node:http'

import type { Config } from '../config/schema.ts'
import { openSecretFiles } from '../config/secret-files.ts'
import type { Address } from '../listeners/address.ts'
import { isLoopback } from '../listeners/address.ts'
import type { Logger } from '../logging/logger.ts'

/** A listener that was opened. */
export interface Opened {
  readonly server: Server
  readonly address: Address
}

/** Logs warnings about insecure settings, at each start (S7). */
export function warnOfOpenDoors(log: Logger, config: Config, shared: Opened, management: Opened): void {
  const { authentication, api, authorization, security, publicUrl } = config
  warnWhenOpen(log, shared, {
    host: 'HTTP_HOST',
    authentication: authentication.enable ? undefined : 'Set AUTHENTICATION_ENABLE=true',
    tls: security.certFile === '' ? 'Set SECURITY_CERT_FILE and SECURITY_KEY_FILE' : undefined,
  })
  warnWhenOpen(log, management, {
    host: 'API_HOST',
    authentication: api.authentication.enable ? undefined : 'Set API_AUTHENTICATION_ENABLE=true',
    tls: api.security.certFile === '' ? 'Set API_SECURITY_CERT_FILE and API_SECURITY_KEY_FILE' : undefined,
  })
  if (authentication.enable || api.authentication.enable) warnOfForeignTokens(log, authentication)
  for (const { env, file } of openSecretFiles(config)) {
    log.warn({ file }, `every user of this machine can read the secret of ${env}. Set the mode of the file to 0600.`)
  }
  const { jwksUrl, jwksFile, keyFile, secret, secretFile } = authentication
  if (
    !authentication.enable &&
    !api.authentication.enable &&
    `${jwksUrl}${jwksFile}${keyFile}${secret}${secretFile}` !== ''
  ) {
    log.warn('keys for tokens are set, but authentication is off: tokens are ignored. Set AUTHENTICATION_ENABLE=true.')
  }
  if (!authorization.enable && authorization.policyFile !== '') {
    log.warn('a policy is set, but authorization is off: the policy is ignored. Set AUTHORIZATION_ENABLE=true.')
  }
  if (authentication.oauth.enable && isOpenUrl(publicUrl)) {
    log.warn({ url: publicUrl }, 'PUBLIC_URL is http: OAuth clients refuse it, or send tokens without TLS. Use https.')
  }
  if (isOpenUrl(jwksUrl)) {
    log.warn(
      { url: jwksUrl },
      'keys are fetched without TLS: an attacker who can change the response can create valid tokens. Use https.',
    )
  }
}

/** Returns true for a URL of another machine without TLS. */
function isOpenUrl(url: string): boolean {
  return url.startsWith('http:') && !/^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|$)/.test(url)
}

/** The remedies for a listener without authentication or TLS. */
interface Remedies {
  /** The setting with the listener's bind address. */
  readonly host: string
  readonly authentication: string | undefined
  readonly tls: string | undefined
}

function warnWhenOpen(
  log: Logger,
  { server, address: { url } }: Opened,
  { host, authentication, tls }: Remedies,
): void {
  if (isLoopback(server)) return
  if (authentication !== undefined) {
    log.warn(
      `${url} can be reached from other machines, and authentication is off: any caller may do anything. ${authentication}, or set ${host} to 127.0.0.1.${tls === undefined ? '' : ` It has no TLS either. ${tls}.`}`,
    )
  } else if (tls !== undefined) {
    log.warn(
      `${url} can be reached from other machines, and has no TLS: tokens and messages can be read and changed in transit. ${tls}, or set ${host} to 127.0.0.1.`,
    )
  }
}

function warnOfForeignTokens(log: Logger, { issuer, audience }: Config['authentication']): void {
  const missing = [
    ...(issuer === '' ? ['AUTHENTICATION_ISSUER'] : []),
    ...(audience.length === 0 ? ['AUTHENTICATION_AUDIENCE'] : []),
  ]
  if (missing.length === 0) return
  log.warn(
    `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not set: tokens that the same keys sign for other services are accepted here too.`,
  )
}
