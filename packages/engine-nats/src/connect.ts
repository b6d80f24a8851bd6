import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { connect, credsAuthenticator, errors } from '@nats-io/transport-node'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { setTimeout as pause } from 'node:timers/promises'

import { NatsEngineError } from './errors.ts'
import type { Settings } from './options.ts'
import { withoutPassword } from './options.ts'

const RETRY_MS = 1_000

/**
 * Opens the first connection. Waits for the servers as long as the settings allow, and reports the wait
 * once.
 * @throws NatsEngineError OPTION_INVALID, SERVERS_UNREACHABLE, SERVERS_REFUSED
 */
export async function connectToServers(settings: Settings): Promise<NatsConnection> {
  const options = await connectionOptions(settings)
  const shown = settings.servers.map(withoutPassword).join(', ')
  for (let waiting = false; ;) {
    settings.signal?.throwIfAborted()
    try {
      const connection = await connect(options)
      if (waiting) settings.onProblem({ kind: 'healed', message: `connected to NATS at ${shown}` })
      return connection
    } catch (error) {
      if (isRefusal(error)) {
        throw new NatsEngineError('SERVERS_REFUSED', `NATS refused the connection to ${shown}: ${messageOf(error)}`, {
          cause: error,
        })
      }
      if (!settings.waitForServers) {
        throw new NatsEngineError('SERVERS_UNREACHABLE', `NATS cannot be reached at ${shown}`, { cause: error })
      }
      if (!waiting) {
        settings.onProblem({
          kind: 'disconnected',
          message: `NATS cannot be reached at ${shown}; waiting for it`,
          error,
        })
      }
      waiting = true
    }
    // An abort ends the wait; the check at the top of the loop throws its reason.
    await pause(RETRY_MS, undefined, { ...(settings.signal && { signal: settings.signal }) }).catch(() => {})
  }
}

async function connectionOptions(settings: Settings): Promise<NodeConnectionOptions> {
  const { servers, credsFile, tls } = settings
  const withUser = servers.map(credentialsIn).find((found) => found !== undefined)
  const creds = credsFile === undefined ? undefined : await readOption('credsFile', credsFile)
  const tlsOptions = {
    checkServerIdentity: identityCheck(servers),
    ...(tls?.caFile !== undefined && { ca: await readOption('tls.caFile', tls.caFile) }),
    ...(tls?.certFile !== undefined && { cert: await readOption('tls.certFile', tls.certFile) }),
    ...(tls?.keyFile !== undefined && { key: await readOption('tls.keyFile', tls.keyFile) }),
  }
  const encrypted = Object.keys(tls ?? {}).length > 0 || servers.some((server) => server.startsWith('tls://'))
  return {
    servers: servers.map((server) => withoutPassword(server).replace(/^\w+:\/\//, '')),
    name: settings.prefix,
    timeout: settings.requestTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    // Credentials may be in rotation: a refusal during a reconnection does not end the engine.
    ignoreAuthErrorAbort: true,
    // A frozen server is given up after two unanswered pings, that is after 4 to 6 s: about as long as a call
    // waits for an answer.
    pingInterval: 2_000,
    maxPingOut: 2,
    noAsyncTraces: true,
    ...(encrypted && { tls: tlsOptions }),
    ...(creds !== undefined && { authenticator: credsAuthenticator(new TextEncoder().encode(creds)) }),
    ...(creds === undefined && withUser),
  }
}

/**
 * Checks the server's certificate. For a server that is addressed by its IP, the client passes no host, and
 * Node looks for `localhost` in the certificate: it must then contain one of the given addresses.
 */
function identityCheck(servers: readonly string[]): typeof checkServerIdentity {
  const addresses = servers
    .map((server) => new URL(`nats://${withoutPassword(server).replace(/^\w+:\/\//, '')}`).hostname)
    .map((host) => host.replace(/^\[(.*)\]$/, '$1'))
    .filter((host) => isIP(host) !== 0)
  return (host, certificate) => {
    const problem = checkServerIdentity(host, certificate)
    if (!problem || host !== 'localhost') return problem
    return addresses.some((address) => !checkServerIdentity(address, certificate)) ? undefined : problem
  }
}

function credentialsIn(server: string): { user: string; pass: string } | undefined {
  const match = /^(?:\w+:\/\/)?([^@]*)@/.exec(server)
  if (match?.[1] === undefined) return undefined
  const [user = '', ...pass] = match[1].split(':')
  return { user: decodeURIComponent(user), pass: decodeURIComponent(pass.join(':')) }
}

async function readOption(name: string, file: string): Promise<string> {
  try {
    return (await readSmallFile(file)).text
  } catch (error) {
    throw new NatsEngineError('OPTION_INVALID', `invalid option ${name}: ${messageOf(error)}`, { cause: error })
  }
}

const CERTIFICATE = /certificate|self[- ]signed|unable to verify|ERR_TLS|altnames|secure connection/i

function isRefusal(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof errors.AuthorizationError) return true
    if (CERTIFICATE.test(cause.message)) return true
    if ('code' in cause && typeof cause.code === 'string' && CERTIFICATE.test(cause.code)) return true
  }
  return false
}
