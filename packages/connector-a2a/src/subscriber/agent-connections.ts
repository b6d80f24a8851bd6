import type { AgentOptions } from 'node:http'
import { Agent as HttpAgent } from 'node:http'
import type { AgentOptions as TlsAgentOptions } from 'node:https'
import { Agent as HttpsAgent } from 'node:https'
import { createSecureContext } from 'node:tls'

import type { AgentAddressPolicy } from '@signalbox/registry'
import { AgentAddressError } from '@signalbox/registry'

import { AgentProxy } from './agent-proxy.ts'
import { ProxiedHttpAgent, ProxiedHttpsAgent } from './proxied-agents.ts'

export interface ConnectionOptions {
  /** Do not verify the agents' certificates (AgentTLSSkipVerify). */
  readonly tlsSkipVerify: boolean
  /** Certificates to trust in place of the system's, PEM. @default the system's */
  readonly ca?: string | readonly string[]
  /** Refuses addresses as they are connected to: what a name stands for may change (R8). */
  readonly addressPolicy: AgentAddressPolicy
  /** A forward proxy to go through, `http://[user:password@]host[:port]`. @default none */
  readonly proxyUrl?: string
}

/**
 * How long a connection waits for the next request, in milliseconds. Shorter than the shortest time after which servers
 * close an idle connection (2 s): a request that meets such a close is lost, and nobody can tell whether the agent saw it.
 */
const IDLE_MS = 1_500

/**
 * The connections to agents: kept alive, in a pool for each origin, as many as there are calls. One agent's connections
 * never wait for another's.
 */
export class AgentConnections {
  readonly #addressPolicy: AgentAddressPolicy
  readonly #http: HttpAgent
  readonly #https: HttpsAgent
  readonly proxy: AgentProxy | undefined

  /** @throws RangeError for what is no proxy's URL */
  constructor({ tlsSkipVerify, ca, addressPolicy, proxyUrl }: ConnectionOptions) {
    this.#addressPolicy = addressPolicy
    const options: AgentOptions = { keepAlive: true, timeout: IDLE_MS, lookup: addressPolicy.lookup }
    const tls: TlsAgentOptions = {
      ...options,
      rejectUnauthorized: !tlsSkipVerify,
      // Made once: the agent would read all certificates again for each connection, and compare them for each request.
      ...(ca === undefined
        ? {}
        : { secureContext: createSecureContext({ ca: typeof ca === 'string' ? ca : [...ca] }) }),
    }
    this.proxy = proxyUrl === undefined ? undefined : new AgentProxy(proxyUrl)
    this.#http = this.proxy === undefined ? new HttpAgent(options) : new ProxiedHttpAgent(this.proxy, options)
    this.#https = this.proxy === undefined ? new HttpsAgent(tls) : new ProxiedHttpsAgent(this.proxy, tls)
  }

  /** Whether a host may be called, as far as can be said without resolving it. */
  permits(hostname: string): boolean {
    try {
      this.#addressPolicy.assertHost(hostname)
      return true
    } catch (error) {
      if (error instanceof AgentAddressError) return false
      throw error
    }
  }

  /** Where a proxy connects in our place, what a name stands for is looked at before the call (R8). */
  async permitsNow(url: URL): Promise<boolean> {
    return (await this.#addressPolicy.check(url)) === undefined
  }

  for(protocol: string): HttpAgent {
    return protocol === 'https:' ? this.#https : this.#http
  }

  /** Closes every connection, those in use too. */
  close(): void {
    this.#http.destroy()
    this.#https.destroy()
    this.proxy?.close()
  }
}
