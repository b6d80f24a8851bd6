import { createSecureContext } from 'node:tls'

import type { AgentAddressPolicy } from '@signalbox/registry'
import type { Pool } from 'undici'

import { AgentProxy } from './agent-proxy.ts'
import { proxiedConnector } from './proxied-connector.ts'
import { undici } from './undici.ts'

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

/** An agent that names its own time is believed this many milliseconds less. */
const IDLE_MARGIN_MS = 1_000

/** A connection that is not accepted by then is given up, in milliseconds: the call may have ended long before. */
const CONNECT_MS = 10_000

/**
 * The connections to agents: kept alive, in a pool for each origin, as many as there are calls. One agent's connections
 * never wait for another's. A pool is gone with its last connection.
 */
export class AgentConnections {
  readonly #addressPolicy: AgentAddressPolicy
  readonly #optionsFor: (origin: URL) => Pool.Options
  readonly #pools = new Map<string, Pool>()
  readonly proxy: AgentProxy | undefined

  /** @throws RangeError for what is no proxy's URL */
  constructor({ tlsSkipVerify, ca, addressPolicy, proxyUrl }: ConnectionOptions) {
    this.#addressPolicy = addressPolicy
    const connect = {
      timeout: CONNECT_MS,
      rejectUnauthorized: !tlsSkipVerify,
      // Made once: each connection would read all certificates again.
      ...(ca === undefined
        ? {}
        : { secureContext: createSecureContext({ ca: typeof ca === 'string' ? ca : [...ca] }) }),
    }
    const proxy = proxyUrl === undefined ? undefined : new AgentProxy(proxyUrl)
    this.proxy = proxy
    const options: Pool.Options = {
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      // A call has one deadline, and that is ours.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
    const proxied = proxy && proxiedConnector(proxy, connect)
    this.#optionsFor = (origin) => ({
      ...options,
      connect: proxied ?? { ...connect, lookup: addressPolicy.lookupFor(origin) },
    })
  }

  /** Returns a function that tells whether a URL may be called now, as far as can be said without resolving its host. */
  hostCheck(url: URL): () => boolean {
    return this.#addressPolicy.hostCheck(url)
  }

  /** Where a proxy connects in our place, what a name stands for is looked at before the call (R8). */
  async permitsNow(url: URL): Promise<boolean> {
    return (await this.#addressPolicy.check(url)) === undefined
  }

  /** The pool of an origin; to be asked for with each request. */
  to(origin: string): Pool {
    return this.#pools.get(origin) ?? this.#open(origin)
  }

  /** Loads what connections need, so that the first call does not wait for it. */
  prepare(): void {
    undici()
  }

  /** Origins with connections, or with calls that wait for one. */
  get origins(): number {
    return this.#pools.size
  }

  /** Closes every connection, those in use too. */
  close(): void {
    for (const pool of this.#pools.values()) pool.destroy().catch(() => {})
    this.#pools.clear()
    this.proxy?.close()
  }

  #open(origin: string): Pool {
    const pool = new (undici().Pool)(origin, this.#optionsFor(new URL(origin)))
    let connected = 0
    const dropIfUnused = (): void => {
      if (connected === 0 && pool.stats.size === 0 && this.#pools.get(origin) === pool) this.#pools.delete(origin)
    }
    pool.on('connect', () => connected++)
    pool.on('disconnect', () => {
      connected--
      dropIfUnused()
    })
    pool.on('connectionError', dropIfUnused)
    this.#pools.set(origin, pool)
    return pool
  }
}
