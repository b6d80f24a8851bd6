import { freePort } from '@signalbox/testkit/free-port'

import type { PartialConfig } from '../../src/config/load.ts'
import type { AuthorizationServer } from './authorization-server.ts'
import { startAuthorizationServer } from './authorization-server.ts'
import { serve } from './server.ts'

/** A server in the OAuth mode, and the authorization server of its users. */
export interface ProtectedServer {
  readonly as: AuthorizationServer
  readonly url: URL
  /** The URL as text: the audience of tokens. */
  readonly resource: string
  /** The part of a challenge that names the metadata of the resource. */
  readonly metadata: string
  /** The callers of accepted sends. */
  readonly senders: string[]
}

/** Starts a server in the OAuth mode, whose user is alice. */
export async function serveProtected(more: PartialConfig = {}): Promise<ProtectedServer> {
  const [as, port] = await Promise.all([startAuthorizationServer('alice'), freePort()])
  const publicUrl = `http://127.0.0.1:${port}`
  const resource = `${publicUrl}/mcp`
  const { broker } = await serve({
    ...more,
    http: { port },
    publicUrl,
    authentication: {
      enable: true,
      jwksUrl: as.jwksUrl,
      issuer: as.issuer,
      audience: [resource],
      oauth: { enable: true },
    },
  })
  const senders: string[] = []
  broker.observe({
    accepted: (type, _channel, { clientId }) => {
      if (type === 'queues') senders.push(clientId)
    },
  })
  const metadata = `resource_metadata="${publicUrl}/.well-known/oauth-protected-resource/mcp"`
  return { as, url: new URL(resource), resource, senders, metadata }
}
