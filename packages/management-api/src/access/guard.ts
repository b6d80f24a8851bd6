import { ANONYMOUS } from '@signalbox/broker-core'
import { AuthenticationError, hasRole, originPolicy } from '@signalbox/http-kit'
import type { Authenticator, Identity, OriginPolicy, Role, TrustedOrigins } from '@signalbox/http-kit'
import type { FastifyRequest } from 'fastify'

import type { AuditLog } from '../audit/audit-log.ts'
import { ManagementError, roleMissing } from '../errors.ts'
import { Operator } from './operator.ts'

export interface GuardOptions {
  /** Undefined while control-plane authentication is off: everybody acts as Admin (S3). */
  readonly authenticator: Authenticator | undefined
  readonly trustedOrigins: TrustedOrigins
  /** The address the server binds to, which `auto` trusts. */
  readonly bindHost: string | undefined
}

/** Decides who may come in (S5): the origin, then the credentials, then the role. The body is not read before that. */
export class Guard {
  readonly #authenticator: Authenticator | undefined
  readonly #originAllowed: OriginPolicy
  readonly #audit: AuditLog

  constructor({ authenticator, trustedOrigins, bindHost }: GuardOptions, audit: AuditLog) {
    this.#authenticator = authenticator
    this.#originAllowed = originPolicy(trustedOrigins, bindHost === undefined ? {} : { bindHost })
    this.#audit = audit
  }

  /**
   * @param what What the caller wants to do, for the audit log
   * @throws ManagementError ORIGIN_REFUSED, UNAUTHENTICATED, ROLE_MISSING
   */
  async admit(request: FastifyRequest, role: Role, what: string): Promise<Operator> {
    if (!this.#originAllowed(request.headers.origin)) throw new ManagementError('ORIGIN_REFUSED', 'origin not allowed')
    const { remoteAddress: address = '' } = request.socket
    if (this.#authenticator === undefined) return new Operator({ ...ANONYMOUS, roles: ['Admin'] }, address)
    const identity = await this.#identify(this.#authenticator, request, address)
    if (!hasRole(identity, role)) {
      const { clientId: client } = identity
      this.#audit.record({ client, action: what, address, outcome: 'denied', code: 'ROLE_MISSING' })
      throw roleMissing(role)
    }
    return new Operator(identity, address)
  }

  async #identify(authenticator: Authenticator, request: FastifyRequest, address: string): Promise<Identity> {
    try {
      return await authenticator.authenticate(request.raw)
    } catch (error) {
      if (!(error instanceof AuthenticationError)) throw error
      this.#audit.authenticationFailed(address, 'management')
      throw new ManagementError('UNAUTHENTICATED', 'Authentication failed', {}, { cause: error })
    }
  }
}
