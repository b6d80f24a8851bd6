import type { Identity, Role } from '@signalbox/http-kit'

/**
 * A verified caller of the management listener. A class, so that observers of the Broker can
 * recognize operators.
 */
export class Operator implements Identity {
  readonly clientId: string
  readonly roles: readonly Role[]
  readonly expiresAt?: number
  readonly account?: string
  /** The address of the request; empty if it is not known any more. */
  readonly address: string

  constructor({ account, clientId, roles = [], expiresAt }: Identity, address: string) {
    this.clientId = clientId
    this.roles = roles
    if (account !== undefined) this.account = account
    if (expiresAt !== undefined) this.expiresAt = expiresAt
    this.address = address
  }
}
