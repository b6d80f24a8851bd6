import { Semaphore, unlessAborted } from '@signalbox/broker-core/internal'
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

import { hostName } from '../outbound/addresses.ts'
import type { NameFilePaths, NameRules } from './name-files.ts'
import { NameFiles } from './name-files.ts'
import { NameError, queryName } from './name-query.ts'

/** Options of {@link NameResolver}. */
export interface NameResolverOptions {
  /** The name servers, as addresses with an optional port: `10.0.0.2`, `[fd00::2]:5353`. @default the system's */
  readonly servers?: readonly string[]
  /** The files with the machine's own names and the search domains. @default the system's */
  readonly files?: NameFilePaths
  /** The time after which the files are read again, in ms. @default 5000 */
  readonly lookMs?: number
}

/**
 * Resolves a name to all its addresses; rejects if it has none.
 * @param account The account that the lookup counts against. @default one for all
 */
export type ResolveHost = (hostname: string, account?: string) => Promise<readonly LookupAddress[]>

/**
 * The times of c-ares, in ms. It lowers them to about 1 s for a name server that has answered quickly before, and ignores an
 * answer that comes after its question was repeated: a name server answers the repeated question from its cache.
 */
const QUERY_TIMES = { timeout: 2_000, maxTimeout: 2_000, tries: 3 }

/** The time for a name with all its search domains, in ms, including the wait for a place. */
const LOOKUP_MS = 3_000

/** The lookups in flight of all accounts. One account gets at most half of them. */
const LOOKUPS = 512

/** The shortest and the longest time for which addresses are used, in seconds. */
const MIN_TTL = 1
const MAX_TTL = 60

/** The time for which a failed name is not asked again, in ms. */
const FAILED_MS = 3_000

/** The most names that are remembered; the oldest is dropped for a new one. */
const MAX_NAMES = 10_000

/** The longest name, in characters (RFC 1035). */
const MAX_NAME = 253

/** RFC 6761: no name server is asked for these. */
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/** A remembered result. */
interface Known {
  readonly untilMs: number
  readonly addresses: readonly LookupAddress[] | NameError
}

/**
 * Resolves names by c-ares, as `getaddrinfo` would: `/etc/hosts`, then DNS with the search domains of
 * `/etc/resolv.conf`. `getaddrinfo` itself occupies a thread of the process for each name, and only two threads serve
 * names, so a name server that does not answer would delay every other name. Here a lookup occupies no thread and ends
 * after 3 s, and the names of one account cannot delay those of another.
 */
export class NameResolver {
  readonly #files: NameFiles
  readonly #servers: readonly string[]
  readonly #places = new Semaphore(LOOKUPS, { leavesFree: true })
  readonly #known = new Map<string, Known>()
  /** By account and name: a lookup must not wait in the line of another account. */
  readonly #pending = new Map<string, Promise<readonly LookupAddress[]>>()
  #resolver: { readonly of: string; readonly queries: Resolver } | undefined

  /** @throws Error for a server that is not an address */
  constructor({ servers = [], files, lookMs }: NameResolverOptions = {}) {
    this.#servers = servers
    this.#files = new NameFiles(files, lookMs)
    if (servers.length > 0) this.#queries('')
  }

  /** Resolves a name to its addresses, IPv4 first. @throws NameError */
  readonly resolve: ResolveHost = async (hostname, account = '') => {
    const host = hostName(hostname)
    const family = isIP(host)
    if (family !== 0) return [{ address: host, family }]
    if (host === 'localhost' || host.endsWith('.localhost')) return LOOPBACK
    if (host === '' || host.length > MAX_NAME) throw new NameError('ENOTFOUND', host.slice(0, MAX_NAME))
    const rules = await this.#files.current()
    const listed = rules.hosts.get(host)
    if (listed !== undefined) return listed
    const known = this.#known.get(host)
    if (known !== undefined && performance.now() < known.untilMs) return resultOf(known)
    const key = `${account} ${host}`
    const pending = this.#pending.get(key) ?? this.#lookUp(host, account, rules)
    this.#pending.set(key, pending)
    try {
      return await pending
    } finally {
      if (this.#pending.get(key) === pending) this.#pending.delete(key)
    }
  }

  async #lookUp(host: string, account: string, rules: NameRules): Promise<readonly LookupAddress[]> {
    const overdue = AbortSignal.timeout(LOOKUP_MS)
    const tooLate = new NameError('EAI_AGAIN', host)
    await this.#places.acquire(overdue, account).catch(() => {
      throw tooLate
    })
    // The queries of an overdue lookup keep its place until they end.
    const found = this.#ask(host, rules, overdue).finally(() => this.#places.release(account))
    try {
      const { addresses, ttl } = await unlessAborted(found, overdue)
      this.#remember(host, addresses, Math.min(Math.max(ttl, MIN_TTL), MAX_TTL) * 1_000)
      return addresses
    } catch (error) {
      // The error must not name a search domain: callers see it.
      const failure = error instanceof NameError ? new NameError(error.code, host) : tooLate
      this.#remember(host, failure, FAILED_MS)
      throw failure
    }
  }

  /** Asks for the candidates in the order of the C library, until one has addresses. */
  async #ask(host: string, rules: NameRules, overdue: AbortSignal): ReturnType<typeof queryName> {
    const queries = this.#queries(rules.resolverText)
    let failure = new NameError('ENOTFOUND', host)
    for (const name of candidates(host, rules)) {
      if (overdue.aborted) break
      try {
        return await queryName(queries, name)
      } catch (error) {
        if (!(error instanceof NameError) || !error.answered) throw error
        if (failure.code === 'ENOTFOUND') failure = error
      }
    }
    throw failure
  }

  /** Returns the queries by the servers that the system names now. */
  #queries(resolverText: string): Resolver {
    if (this.#resolver?.of !== resolverText) {
      const queries = new Resolver(QUERY_TIMES)
      if (this.#servers.length > 0) queries.setServers(this.#servers)
      this.#resolver = { of: resolverText, queries }
    }
    return this.#resolver.queries
  }

  #remember(host: string, addresses: Known['addresses'], ms: number): void {
    this.#known.delete(host)
    this.#known.set(host, { untilMs: performance.now() + ms, addresses })
    if (this.#known.size <= MAX_NAMES) return
    const [oldest] = this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}

function resultOf({ addresses }: Known): readonly LookupAddress[] {
  if (addresses instanceof NameError) throw addresses
  return addresses
}

function candidates(host: string, { search, ndots }: NameRules): readonly string[] {
  const longer = search.map((domain) => `${host}.${domain}`).filter((name) => name.length <= MAX_NAME)
  return host.split('.').length > ndots ? [host, ...longer] : [...longer, host]
}

let shared: NameResolver | undefined

/** Resolves a name with the name servers of the system. All callers in the process share one {@link NameResolver}. */
export const resolveBySystem: ResolveHost = (hostname, account) => {
  shared ??= new NameResolver()
  return shared.resolve(hostname, account)
}
