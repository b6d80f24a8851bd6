import type { buildConnector } from 'undici'

import type { AgentProxy } from './agent-proxy.ts'
import { undici } from './undici.ts'

const HTTPS_PORT = 443

/**
 * Connects through a proxy: for plain HTTP to the proxy itself, for TLS to the agent through a
 * tunnel.
 */
export function proxiedConnector(proxy: AgentProxy, options: buildConnector.BuildOptions): buildConnector.connector {
  const { buildConnector: build } = undici()
  const toProxy = build({
    lookup: proxy.lookup,
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
  })
  // The tunnel uses the certificates, host name and sessions of direct connections.
  const overTunnel = build({ ...options, allowH2: false })
  return (agent, done) => {
    if (agent.protocol !== 'https:') {
      toProxy(proxy.endpoint, done)
      return
    }
    proxy.tunnel(agent.hostname, agent.port === '' ? HTTPS_PORT : Number(agent.port), (error, httpSocket) => {
      if (httpSocket === undefined) done(error ?? new Error('no tunnel'), null)
      else overTunnel({ ...agent, httpSocket }, done)
    })
  }
}
