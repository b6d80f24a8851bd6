import { createSecureContext } from 'node:tls'

import { lookupBy } from '@signalbox/http-kit'
import type { Pool } from 'undici'

import type { AgentAddressPolicy } from '../url-safety/agent-address-policy.ts'
import { AgentProxy } from './agent-proxy.ts'
import { proxiedConnector } from './proxied-connector.ts'
import { undici } from './undici.ts'

export interface ConnectionOptions {
  /** Skips the verification of the agents' certificates (AgentTLSSkipVerify). */
  readonly tlsSkipVerify: boolean
  /** Certificates to trust in place of the system's, PEM. @default the system's */
  readonly ca?: string | readonly string[]
  /** Checks each address when a connection is opened, because the addresses of a name may change. */
  readonly addressPolicy: AgentAddressPolicy
  /** The URL of a forward proxy, `http://[user:password@]host[:port]`. @default none */
  readonly proxyUrl?: string
}

/**
 * The time for which an idle connection is kept, in ms. Shorter than the shortest idle time-out of
 * servers (2 s): a request that meets such a close is lost, and the agent may or may not have
 * received it.
 */
const IDLE_MS = 1_500

/** The time subtracted from an idle time-out that an agent announces, in ms. */
const IDLE_MARGIN_MS = 1_000

/** The time after which a connection attempt fails, in ms. The call may have ended long before. */
const CONNECT_MS = 10_000

/**
 * The connections to agents: kept alive, in one pool for each origin and account, as many as there are
 * calls. Connections of one agent never wait for another's. A pool is removed with its last connection.
 */
export class AgentConnections {
  readonly #addressPolicy: AgentAddressPolicy
  readonly #optionsFor: (origin: URL, account: string) => Pool.Options
  readonly #pools = new Map<string, Pool>()
  readonly proxy: AgentProxy | undefined

  /** @throws RangeError if `proxyUrl` is not the URL of a proxy */
  constructor({ tlsSkipVerify, ca, addressPolicy, proxyUrl }: ConnectionOptions) {
    this.#addressPolicy = addressPolicy
    const connect = {
      timeout: CONNECT_MS,
      rejectUnauthorized: !tlsSkipVerify,
      // Created once: otherwise each connection reads all certificates again.
      ...(ca === undefined
        ? {}
        : { secureContext: createSecureContext({ ca: typeof ca === 'string' ? ca : [...ca] }) }),
    }
    const proxy = proxyUrl === undefined ? undefined : new AgentProxy(proxyUrl, lookupBy(addressPolicy.resolve))
    this.proxy = proxy
    const options: Pool.Options = {
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      // Each call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
    const proxied = proxy && proxiedConnector(proxy, connect)
    this.#optionsFor = (origin, account) => ({
      ...options,
      connect: proxied ?? { ...connect, lookup: addressPolicy.lookupFor(origin, account) },
    })
  }

  /** Returns a function that checks whether a URL may be called now, without resolving its host. */
  hostCheck(url: URL): () => boolean {
    return this.#addressPolicy.hostCheck(url)
  }

  /**
   * Returns true if a URL may be called, after resolving its host. For proxies: they connect, so the
   * check comes before the call.
   */
  async permitsNow(url: URL, account: string): Promise<boolean> {
    return (await this.#addressPolicy.check(url, account)) === undefined
  }

  /**
   * Returns the pool of an origin. Call it for each request.
   * @param account The account that lookups of the host count against
   */
  to(origin: string, account: string): Pool {
    const key = `${origin} ${account}`
    return this.#pools.get(key) ?? this.#open(key, origin, account)
  }

  /** Loads the HTTP client, so that the first call does not wait for it. */
  prepare(): void {
    undici()
  }

  /** The number of origins with connections, or with calls that wait for one. */
  get origins(): number {
    return this.#pools.size
  }

  /** Closes every connection, including those in use. */
  close(): void {
    for (const pool of this.#pools.values()) pool.destroy().catch(() => {})
    this.#pools.clear()
    this.proxy?.close()
  }

  #open(key: string, origin: string, account: string): Pool {
    const pool = new (undici().Pool)(origin, this.#optionsFor(new URL(origin), account))
    let connected = 0
    const dropIfUnused = (): void => {
      if (connected === 0 && pool.stats.size === 0 && this.#pools.get(key) === pool) this.#pools.delete(key)
    }
    pool.on('connect', () => connected++)
    pool.on('disconnect', () => {
      connected--
      dropIfUnused()
    })
    pool.on('connectionError', dropIfUnused)
    this.#pools.set(key, pool)
    return pool
  }
}
