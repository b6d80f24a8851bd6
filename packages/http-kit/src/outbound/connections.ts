import { createRequire } from 'node:module'
import { createSecureContext } from 'node:tls'

import type * as Undici from 'undici'
import type { buildConnector, Dispatcher, Pool } from 'undici'

import type { AddressPolicy } from './address-policy.ts'
import { lookupBy } from './address-policy.ts'
import { ForwardProxy } from './forward-proxy.ts'

export interface ConnectionOptions {
  /** Skips the verification of certificates. @default as NODE_TLS_REJECT_UNAUTHORIZED says */
  readonly tlsSkipVerify?: boolean | undefined
  /** Certificates to trust in place of the system's, PEM. @default the system's */
  readonly ca?: string | readonly string[] | undefined
  /** Checks each address when a connection is opened, because the addresses of a name may change. */
  readonly addressPolicy: AddressPolicy
  /** The URL of a forward proxy, `http://[user:password@]host[:port]`. @default none */
  readonly proxyUrl?: string | undefined
  /** Uses HTTP/2 with servers that prefer it. @default false */
  readonly http2?: boolean | undefined
}

/**
 * The time for which an idle connection is kept, in ms. Shorter than the shortest idle time-out of
 * servers (2 s): a request that meets such a close is lost, and the server may or may not have
 * received it.
 */
const IDLE_MS = 1_500

/** The time subtracted from an idle time-out that a server announces, in ms. */
const IDLE_MARGIN_MS = 1_000

/** The time after which a connection attempt fails, in ms. The call may have ended long before. */
const CONNECT_MS = 10_000

/** The time from the first possible call until undici is loaded in advance, in ms. */
const WARM_UP_MS = 1_000

/**
 * The connections to servers that callers chose, such as agents and webhook endpoints: kept alive, in one pool for each
 * origin and account, as many as there are calls. Calls to one server never wait for another's. A pool is removed with
 * its last connection.
 */
export class OutboundConnections {
  readonly addressPolicy: AddressPolicy
  readonly proxy: ForwardProxy | undefined
  readonly #optionsFor: (origin: URL, account: string) => Pool.Options
  readonly #pools = new Map<string, Pool>()

  /** @throws RangeError if `proxyUrl` is not the URL of a proxy */
  constructor({ tlsSkipVerify, ca, addressPolicy, proxyUrl, http2 = false }: ConnectionOptions) {
    this.addressPolicy = addressPolicy
    const connect: buildConnector.BuildOptions = { timeout: CONNECT_MS }
    if (tlsSkipVerify !== undefined) connect.rejectUnauthorized = !tlsSkipVerify
    // Created once: otherwise each connection reads all certificates again.
    if (ca !== undefined) connect.secureContext = createSecureContext({ ca: typeof ca === 'string' ? ca : [...ca] })
    const options: Pool.Options = {
      // No limit: a server that hangs must not delay calls to others at its origin.
      connections: null,
      allowH2: http2,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      // Each call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
    this.proxy = proxyUrl === undefined ? undefined : new ForwardProxy(proxyUrl, lookupBy(addressPolicy.resolve))
    const proxied = this.proxy && proxiedConnector(this.proxy, connect)
    this.#optionsFor = (origin, account) => ({
      ...options,
      connect: proxied ?? { ...connect, allowH2: http2, lookup: addressPolicy.lookupFor(origin, account) },
    })
    setTimeout(() => void undici(), WARM_UP_MS).unref()
  }

  /**
   * Returns the pool of an origin. Call it for each request.
   * @param key The origin and the account, as {@link OutboundTarget} joins them
   * @param account The account that lookups of the host count against
   */
  to(key: string, origin: string, account: string): Pool {
    return this.#pools.get(key) ?? this.#open(key, origin, account)
  }

  /** The number of origins with connections, or with calls that wait for one. */
  get origins(): number {
    return this.#pools.size
  }

  /** Closes every connection, including those in use. */
  async close(): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    this.proxy?.close()
    await Promise.allSettled(pools.map((pool) => pool.destroy()))
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

/** A URL that the server calls, parsed once. */
export class OutboundTarget {
  readonly url: string
  /** The value of the header Host. */
  readonly host: string
  /** Checks the address before each call through a proxy, which makes the connection; undefined if each connection is checked. */
  readonly permittedNow: (() => Promise<boolean>) | undefined
  readonly #hostPermitted: () => boolean
  readonly #origin: string
  readonly #path: string
  readonly #account: string
  readonly #key: string
  readonly #connections: OutboundConnections
  /** Headers for a proxy that reads the request. */
  readonly #proxyHeaders: readonly string[]

  /**
   * @param account The account that lookups of the host count against
   * @throws TypeError if the value is not a URL
   */
  constructor(url: string, account: string, connections: OutboundConnections) {
    const parsed = new URL(url)
    const { protocol, host, origin, pathname, search } = parsed
    const { addressPolicy, proxy } = connections
    // The first call must not wait for it.
    undici()
    const readByProxy = proxy !== undefined && protocol === 'http:'
    this.url = url
    this.host = host
    this.permittedNow = proxy === undefined ? undefined : () => addressPolicy.permits(parsed, account)
    this.#hostPermitted = addressPolicy.hostCheck(parsed)
    this.#origin = origin
    this.#account = account
    this.#key = `${origin} ${account}`
    this.#path = (readByProxy ? origin : '') + pathname + search
    this.#connections = connections
    this.#proxyHeaders = readByProxy ? proxy.headers : []
  }

  /**
   * True if the policy allows the URL's host. Needed for hosts that are addresses, because node
   * resolves no name for them; the addresses of names are checked when a connection opens. Read it
   * for each call: the server's own addresses become known only after the agents.
   */
  get permitted(): boolean {
    return this.#hostPermitted()
  }

  /**
   * Sends one request, without retries, and passes the events of the exchange to the handler, possibly
   * before this returns. The headers are an object, or names and values in turn, without Content-Length.
   * @param below A path below that of the url, with a query. @default the url itself
   */
  request(
    method: Dispatcher.HttpMethod,
    headers: string[] | Record<string, string>,
    body: Uint8Array | null,
    handler: Dispatcher.DispatchHandler,
    below = '',
  ): void {
    const path = below === '' ? this.#path : this.#path.replace(/\/$/, '') + below
    const sent = this.#proxyHeaders.length === 0 ? headers : [...flat(headers), ...this.#proxyHeaders]
    const pool = this.#connections.to(this.#key, this.#origin, this.#account)
    pool.dispatch({ path, method, headers: sent, body }, handler)
  }
}

function flat(headers: readonly string[] | Readonly<Record<string, string>>): readonly string[] {
  return Array.isArray(headers) ? headers : Object.entries(headers).flat()
}

const HTTPS_PORT = 443

/**
 * Connects through a proxy: for plain HTTP to the proxy itself, for TLS to the server through a
 * tunnel.
 */
function proxiedConnector(proxy: ForwardProxy, options: buildConnector.BuildOptions): buildConnector.connector {
  const { buildConnector: build } = undici()
  const toProxy = build({ lookup: proxy.lookup, timeout: CONNECT_MS })
  // The tunnel uses the certificates, host name and sessions of direct connections.
  const overTunnel = build({ ...options, allowH2: false })
  return (server, done) => {
    if (server.protocol !== 'https:') {
      toProxy(proxy.endpoint, done)
      return
    }
    proxy.tunnel(server.hostname, server.port === '' ? HTTPS_PORT : Number(server.port), (error, httpSocket) => {
      if (httpSocket === undefined) done(error ?? new Error('no tunnel'), null)
      else overTunnel({ ...server, httpSocket }, done)
    })
  }
}

const require = createRequire(import.meta.url)

let loaded: typeof Undici | undefined

/**
 * Loads undici on the first call, or shortly after the start: that blocks the event loop for a tenth of a second, which
 * neither a start nor the callers of a busy server should wait for.
 */
export function undici(): typeof Undici {
  if (loaded === undefined) {
    const library: typeof Undici = require('undici')
    loaded = library
  }
  return loaded
}
