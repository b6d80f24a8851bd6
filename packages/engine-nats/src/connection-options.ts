import type { NodeConnectionOptions } from '@nats-io/transport-node'
import { credsAuthenticator } from '@nats-io/transport-node'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'

/** The data from which the options of a connection are made. A thread can receive it, in contrast to the options. */
export interface ConnectionData {
  /** Addresses with scheme and password, as they are configured. */
  readonly servers: readonly string[]
  /** The name of the connection on the servers. */
  readonly name: string
  readonly requestTimeoutMs: number
  /** The content of the credentials file. */
  readonly creds: string | undefined
  /** The contents of the files; undefined without encryption. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
}

/** Returns the options of the client library. Does not load the packages of the broker, which a thread does without. */
export function connectionOptions({
  servers,
  name,
  requestTimeoutMs,
  creds,
  tls,
}: ConnectionData): NodeConnectionOptions {
  const withUser = servers.map(credentialsIn).find((found) => found !== undefined)
  const encryption = { checkServerIdentity: identityCheck(servers), ...tls }
  return {
    servers: servers.map((server) => addressOf(server)),
    name,
    timeout: requestTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    // Credentials may be in rotation: a refusal during a reconnection does not end the engine.
    ignoreAuthErrorAbort: true,
    // A frozen server is given up after two unanswered pings, that is after 4 to 6 s: about as long as a call
    // waits for an answer.
    pingInterval: 2_000,
    maxPingOut: 2,
    noAsyncTraces: true,
    ...(tls !== undefined && { tls: encryption }),
    ...(creds !== undefined && { authenticator: credsAuthenticator(new TextEncoder().encode(creds)) }),
    ...(creds === undefined && withUser),
  }
}

/** Returns an address without scheme, user and password. */
function addressOf(server: string): string {
  return server.replace(/^\w+:\/\//, '').replace(/^[^@]*@/, '')
}

/**
 * Checks the server's certificate. For a server that is addressed by its IP, the client passes no host, and
 * Node looks for `localhost` in the certificate: it must then contain one of the given addresses.
 */
function identityCheck(servers: readonly string[]): typeof checkServerIdentity {
  const addresses = servers
    .map((server) => new URL(`nats://${addressOf(server)}`).hostname)
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
