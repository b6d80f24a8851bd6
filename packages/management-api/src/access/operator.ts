import type { Identity, Role } from '@signalbox/http-kit'

/** A verified caller of the management listener. A class, so that observers of the Broker can tell one from other callers. */
export class Operator implements Identity {
  readonly clientId: string
  readonly roles: readonly Role[]
  readonly expiresAt?: number
  readonly account?: string
  /** Where the request came from; empty when that is not known any more. */
  readonly address: string

  constructor({ account, clientId, roles = [], expiresAt }: Identity, address: string) {
    this.clientId = clientId
    this.roles = roles
    if (account !== undefined) this.account = account
    if (expiresAt !== undefined) this.expiresAt = expiresAt
    this.address = address
  }
}
