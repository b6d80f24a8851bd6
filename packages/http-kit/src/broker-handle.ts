import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'

import type { Identity } from './authenticator.ts'

const HANDLE = Symbol('broker handle')

/** On the connection itself: clients make many requests on one, as the same caller. */
interface Connection {
  [HANDLE]?: { readonly broker: Broker; readonly identity: Identity; readonly handle: BrokerHandle }
}

/** The Broker for whoever made a request, who is told of with the address that it came from. */
export function handleOf(broker: Broker, identity: Identity, request: IncomingMessage): BrokerHandle {
  const connection: Socket & Connection = request.socket
  const known = connection[HANDLE]
  if (known?.identity === identity && known.broker === broker) return known.handle
  const { clientId } = identity
  const { remoteAddress: address } = connection
  const handle = broker.as(address === undefined ? { clientId } : { clientId, address })
  connection[HANDLE] = { broker, identity, handle }
  return handle
}
