import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

import type { Broker, BrokerHandle, Caller } from '@signalbox/broker-core'

import { addressOf, networkOf } from '../admission/trusted-proxies.ts'
import type { Identity } from '../authenticator.ts'

/** What the accounts of anonymous callers begin with; a network address follows. */
export const ANONYMOUS_ACCOUNT = 'address:'

const CALLER = Symbol('caller')

/** On the connection itself: clients make many requests on one, as the same caller. */
interface Connection extends Socket {
  [CALLER]?: ConnectionCaller
}

/** The caller of a request, with what limits count by and the Broker's handle. */
export class ConnectionCaller {
  readonly identity: Identity
  readonly address: string | undefined
  /** What limits count by: `client:{ClientID}`, or `address:{network}` while callers are anonymous. */
  readonly account: string
  #broker: Broker | undefined
  #handle: BrokerHandle | undefined

  constructor(identity: Identity, address: string | undefined, anonymous: boolean) {
    this.identity = identity
    this.address = address
    this.account = anonymous ? `${ANONYMOUS_ACCOUNT}${networkOf(address)}` : `client:${identity.clientId}`
  }

  /** The handle of the Broker for this caller. */
  handle(broker: Broker): BrokerHandle {
    if (this.#handle !== undefined && this.#broker === broker) return this.#handle
    const { clientId } = this.identity
    const { account, address } = this
    const caller: Caller = address === undefined ? { clientId, account } : { clientId, account, address }
    this.#broker = broker
    this.#handle = broker.as(caller)
    return this.#handle
  }
}

/** Returns the caller of a request, kept on its connection for the next one. */
export function callerOn(request: IncomingMessage, identity: Identity, anonymous: boolean): ConnectionCaller {
  const connection: Connection = request.socket
  const known = connection[CALLER]
  const address = addressOf(request)
  if (known !== undefined && known.identity === identity && known.address === address) return known
  const caller = new ConnectionCaller(identity, address, anonymous)
  connection[CALLER] = caller
  return caller
}
