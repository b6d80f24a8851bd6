import type { Broker, BrokerHandle, Caller, Span } from '@signalbox/broker-core'

import { ANONYMOUS_ACCOUNT } from '../admission/admission-control.ts'
import type { Account, AdmissionControl } from '../admission/admission-control.ts'
import { forwardedAddressOf, networkOf } from '../admission/trusted-proxies.ts'
import type { Identity } from '../authentication/authenticator.ts'
import type { HttpConnection, HttpRequest } from './http-message.ts'

const CALLER = Symbol('caller')

/** The caller is stored on the connection, because clients make many requests on one connection as the same caller. */
interface Connection extends HttpConnection {
  [CALLER]?: ConnectionCaller
}

/** The caller of a request, with its account for the limits and its Broker handle. */
export class ConnectionCaller {
  readonly identity: Identity
  /** The client's address as a trusted proxy reports it; `undefined` without such a report. */
  readonly forwarded: string | undefined
  readonly address: string | undefined
  /** The key that limits count by: `client:{ClientID}`, or `address:{network}` while callers are anonymous. */
  readonly account: string
  readonly #anonymous: boolean
  #broker: Broker | undefined
  #handle: BrokerHandle | undefined
  #admission: AdmissionControl | undefined
  #counted: Account | undefined

  constructor(identity: Identity, peer: string | undefined, forwarded: string | undefined, anonymous: boolean) {
    const address = forwarded ?? peer
    this.identity = identity
    this.forwarded = forwarded
    this.address = address
    this.#anonymous = anonymous
    this.account = anonymous ? `${ANONYMOUS_ACCOUNT}${networkOf(address)}` : `client:${identity.clientId}`
  }

  /** Returns the account that counts this caller's requests, bytes and streams. */
  accountIn(admission: AdmissionControl): Account {
    if (this.#counted === undefined || this.#counted.forgotten || this.#admission !== admission) {
      this.#admission = admission
      this.#counted = admission.account(this.account, this.#anonymous)
    }
    return this.#counted
  }

  /** Returns the Broker handle of this caller, for calls within the span of a request if it is recorded. */
  handleWithin(span: Span | undefined, broker: Broker): BrokerHandle {
    const handle = this.handle(broker)
    return span === undefined ? handle : handle.within(span)
  }

  /** Returns the Broker handle of this caller. */
  handle(broker: Broker): BrokerHandle {
    if (this.#handle !== undefined && this.#broker === broker) return this.#handle
    const { clientId, actions, roles } = this.identity
    const { account, address } = this
    const caller: Caller & Pick<Identity, 'roles'> = { clientId, account, roles, address, actions }
    this.#broker = broker
    this.#handle = broker.as(caller)
    return this.#handle
  }
}

/** Returns the caller of a request, and stores it on the connection for the next request. */
export function callerOn(request: HttpRequest, identity: Identity, anonymous: boolean): ConnectionCaller {
  const connection: Connection = request.socket
  const known = connection[CALLER]
  const forwarded = forwardedAddressOf(request)
  if (known !== undefined && known.identity === identity && known.forwarded === forwarded) return known
  const caller = new ConnectionCaller(identity, connection.remoteAddress, forwarded, anonymous)
  connection[CALLER] = caller
  return caller
}
