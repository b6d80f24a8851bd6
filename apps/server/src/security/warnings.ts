import type { FastifyInstance } from 'fastify'

import type { Config } from '../config/schema.ts'
import type { Address } from '../listeners/address.ts'
import { isLoopback } from '../listeners/address.ts'
import type { Logger } from '../log.ts'

/** A listener that was opened. */
export interface Opened {
  readonly app: FastifyInstance
  readonly address: Address
}

/** Says, at each start, what is less safe than it looks (S7). */
export function warnOfOpenDoors(log: Logger, config: Config, shared: Opened, management: Opened): void {
  const { authentication, api, authorization } = config
  if (!authentication.enable) warnWhenOpen(log, shared, 'HTTP_HOST', 'AUTHENTICATION_ENABLE=true')
  if (!api.authentication.enable) warnWhenOpen(log, management, 'API_HOST', 'API_AUTHENTICATION_ENABLE=true')
  const { jwksUrl, jwksFile, keyFile, secret } = authentication
  if (!authentication.enable && !api.authentication.enable && `${jwksUrl}${jwksFile}${keyFile}${secret}` !== '') {
    log.warn(
      'keys for tokens are set, and authentication is off: no token is looked at. Set AUTHENTICATION_ENABLE=true.',
    )
  }
  if (!authorization.enable && authorization.policyFile !== '') {
    log.warn('a policy is set, and authorization is off: it decides nothing. Set AUTHORIZATION_ENABLE=true.')
  }
  if (jwksUrl.startsWith('http:') && !/^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|$)/.test(jwksUrl)) {
    log.warn(
      { url: jwksUrl },
      'keys are fetched without TLS: whoever can answer in its place can make tokens. Use https.',
    )
  }
}

function warnWhenOpen(log: Logger, { app, address: { url } }: Opened, host: string, remedy: string): void {
  if (isLoopback(app)) return
  log.warn(
    `${url} can be reached from other machines, and authentication is off: whoever reaches it may do anything. Set ${remedy}, or set ${host} to 127.0.0.1.`,
  )
}
