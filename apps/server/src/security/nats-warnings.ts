import type { Config } from '../config/schema.ts'
import type { Logger } from '../logging/logger.ts'

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i

/**
 * Warns, at each start, when NATS is reached over the network without credentials or TLS (S7): authentication, policy and
 * roles are checked by the nodes; a client that connects to the NATS servers meets none of these checks.
 */
export function warnOfOpenNats(log: Logger, { engine, nats }: Pick<Config, 'engine' | 'nats'>): void {
  if (engine !== 'nats') return
  const remote = nats.servers.filter((server) => !LOOPBACK.test(hostOf(server)))
  if (remote.length === 0) return
  const { caFile, certFile } = nats.tls
  const hasTls = caFile !== '' || certFile !== '' || remote.every((server) => server.startsWith('tls://'))
  // A certificate of this node is one, where the servers verify it.
  const hasCredentials =
    nats.credsFile !== '' || certFile !== '' || remote.some((server) => withoutScheme(server).includes('@'))
  if (hasTls && hasCredentials) return
  const missing = [
    ...(hasCredentials ? [] : ['credentials (set NATS_CREDS_FILE, or put user and password into NATS_SERVERS)']),
    ...(hasTls ? [] : ['TLS (set NATS_TLS_CA_FILE, or use tls:// addresses in NATS_SERVERS)']),
  ]
  log.warn(
    { servers: remote.map((server) => withoutScheme(server).replace(/^.*@/, '')) },
    `NATS is on another machine and is reached without ${missing.join(' and without ')}. Authentication and policies do not hold for a client that connects to NATS itself: it can read and change every message. docs/security.md has a configuration.`,
  )
}

function withoutScheme(server: string): string {
  return server.replace(/^\w+:\/\//, '')
}

function hostOf(server: string): string {
  return withoutScheme(server).replace(/^.*@/, '').replace(/:\d+$/, '')
}
