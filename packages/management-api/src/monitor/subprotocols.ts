import type { IncomingMessage } from 'node:http'

/** The subprotocol of the monitor. A client that sends a token offers it too, and the server selects it. */
const MONITOR_SUBPROTOCOL = 'signalbox.monitor'

/** The prefix of the subprotocol that carries a token. */
const BEARER_SUBPROTOCOL = 'signalbox.bearer.'

/**
 * Makes the token among the subprotocols of a handshake its Authorization header. Browsers cannot set
 * that header for a WebSocket, and a token in the address would be in logs. A request with both has
 * two Authorization headers, which authenticators refuse.
 */
export function takeTokenOfSubprotocols({ headers, rawHeaders }: IncomingMessage): void {
  const offered = headers['sec-websocket-protocol']
  if (offered === undefined || !offered.includes(BEARER_SUBPROTOCOL)) return
  const protocols = offered.split(',').map((protocol) => protocol.trim())
  const tokens = protocols.filter((protocol) => protocol.startsWith(BEARER_SUBPROTOCOL))
  for (const token of tokens) {
    const authorization = `Bearer ${token.slice(BEARER_SUBPROTOCOL.length)}`
    headers.authorization ??= authorization
    rawHeaders.push('Authorization', authorization)
  }
  const others = protocols.filter((protocol) => !tokens.includes(protocol))
  if (others.length === 0) delete headers['sec-websocket-protocol']
  else headers['sec-websocket-protocol'] = others.join(', ')
}

/** Returns the subprotocol of the answer: that of the monitor if it is offered, otherwise the first. */
export function selectSubprotocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(MONITOR_SUBPROTOCOL)) return MONITOR_SUBPROTOCOL
  const [first = false] = offered
  return first
}
