import type { AgentOptions, ClientRequestArgs } from 'node:http'
import { Agent as HttpAgent } from 'node:http'
import type { AgentOptions as TlsAgentOptions, RequestOptions } from 'node:https'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'

import type { AgentProxy } from './agent-proxy.ts'

type Connected = (error: Error | null, stream: Duplex) => void

/** Keeps connections to a proxy, for requests in absolute form. */
export class ProxiedHttpAgent extends HttpAgent {
  readonly #proxy: AgentProxy

  constructor(proxy: AgentProxy, options: AgentOptions) {
    super(options)
    this.#proxy = proxy
  }

  override createConnection(_options: ClientRequestArgs): Duplex {
    return this.#proxy.connect()
  }
}

/** Keeps TLS connections to agents, through tunnels of a proxy. */
export class ProxiedHttpsAgent extends HttpsAgent {
  readonly #proxy: AgentProxy

  constructor(proxy: AgentProxy, options: TlsAgentOptions) {
    super(options)
    this.#proxy = proxy
  }

  override createConnection(options: RequestOptions, connected: Connected = () => {}): undefined {
    this.#proxy.tunnel(options.host ?? '', Number(options.port), (error, socket) => {
      // As ever, but over the tunnel: the certificates, the name and the sessions are those of direct connections.
      const stream = socket && super.createConnection(Object.assign({}, options, { socket }))
      if (stream) connected(null, stream)
      // Node looks at the stream only where there is no error.
      else Reflect.apply(connected, undefined, [error ?? new Error('no connection over the tunnel')])
    })
  }
}
