import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupOptions } from 'node:dns'

import { AddressList, hostName } from './address-list.ts'
import type { IpAddress } from './ip-address.ts'
import { ipAddress } from './ip-address.ts'
import { ALWAYS_REFUSED } from './refused-addresses.ts'
import type { ListeningAddress } from './own-addresses.ts'
import { OwnAddresses, portOf } from './own-addresses.ts'
import { Resolutions } from './resolutions.ts'

/** Finds every address of a name; rejects when it has none. */
export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>

export interface AgentAddressOptions {
  /** When set, agents may be nowhere else. Addresses, CIDR blocks, hosts, patterns such as `*.example.com`. @default [], anywhere */
  readonly allow?: readonly string[]
  /** Where agents may not be, allowed or not; written as `allow`. @default [] */
  readonly deny?: readonly string[]
  /** Where the server itself listens: agents are never there. Asked with each check. @default nowhere */
  readonly ownAddresses?: () => readonly ListeningAddress[]
  /** @default the system's resolver */
  readonly resolve?: ResolveHost
}

/** What callers are told; generic, so that nobody can ask the broker about its network. */
const NOT_ALLOWED = 'a URL at an address where agents may be called'

/** The agent's address may not be called (R8). */
export class AgentAddressError extends Error {
  override readonly name = 'AgentAddressError'
  readonly code = 'AGENT_ADDRESS_REFUSED'

  constructor() {
    super('the address of the agent may not be called')
  }
}

/** The `lookup` option of `net.connect`, `tls.connect` and agents. */
export type AddressLookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void

/**
 * Which addresses agents may have (R8). It is asked twice: when an agent is registered, by {@link check}, and when it is
 * called, by {@link hostCheck} and {@link lookupFor}, because a name may lead elsewhere by then.
 */
export class AgentAddressPolicy {
  readonly #allow: AddressList
  readonly #deny: AddressList
  readonly #own: OwnAddresses
  readonly #resolve: ResolveHost
  readonly #resolutions: Resolutions

  /** @throws RangeError for an entry of a list that is neither an address nor a host */
  constructor(options: AgentAddressOptions = {}) {
    this.#allow = new AddressList('agent url allow list', options.allow ?? [])
    this.#deny = new AddressList('agent url deny list', options.deny ?? [])
    this.#own = new OwnAddresses(options.ownAddresses ?? (() => []))
    this.#resolve = options.resolve ?? resolveBySystem
    this.#resolutions = new Resolutions(this.#resolve)
  }

  /**
   * Checks where a url leads, by its host and by what that resolves to now. A name that has no address yet passes: agents
   * are often registered before their names are known, and every call is checked again.
   * @returns what the url has to be instead, in general words; undefined when agents may be there
   */
  async check(url: URL): Promise<string | undefined> {
    const host = hostName(url.hostname)
    const port = portOf(url)
    if (this.#refusesHost(host, port)) return NOT_ALLOWED
    if (ipAddress(host) !== undefined) return undefined
    const addresses = await this.#resolutions.of(host)
    // A name of the server's own is refused whole: its other addresses are hardly another server's.
    if (addresses.some(({ address }) => this.#isOwn(address, port))) return NOT_ALLOWED
    return addresses.length > 0 && this.#permitted(host, addresses, port).length === 0 ? NOT_ALLOWED : undefined
  }

  /**
   * Prepares the check that precedes each connection to a URL: Node resolves no name, and so calls no `lookup`, where the
   * host is an address. The lists do not change; the addresses where the server listens may.
   * @returns a function that tells whether the URL may be called now
   */
  hostCheck(url: Pick<URL, 'hostname' | 'port' | 'protocol'>): () => boolean {
    const host = hostName(url.hostname)
    const port = portOf(url)
    const address = ipAddress(host)
    if (address === undefined) {
      const refused = this.#refusesHost(host, port)
      return () => !refused
    }
    const listed = this.#listsPermit(host, address)
    return () => listed && !this.#own.has(address, port)
  }

  /**
   * Makes the lookup for connections to one port: it resolves a name to those of its addresses that may be called there,
   * and fails with {@link AgentAddressError} when there is none.
   */
  lookupFor(url: Pick<URL, 'port' | 'protocol'>): AddressLookup {
    const port = portOf(url)
    return (hostname, options, callback) => {
      // What the caller's own callback throws is the caller's: its connection then has no address, and times out.
      this.#answer(hostname, port, options, callback).catch(() => {})
    }
  }

  async #answer(hostname: string, port: number, options: LookupOptions, callback: LookupCallback): Promise<void> {
    let addresses: LookupAddress[]
    try {
      addresses = await this.#addressesFor(hostname, port, options)
    } catch (error) {
      callback(error instanceof Error ? error : new AgentAddressError(), options.all === true ? [] : '')
      return
    }
    const [first] = addresses
    if (options.all === true) callback(null, addresses)
    else callback(null, first?.address ?? '', first?.family)
  }

  async #addressesFor(hostname: string, port: number, { family = 0 }: LookupOptions): Promise<LookupAddress[]> {
    const host = hostName(hostname)
    if (this.#refusesHost(host, port)) throw new AgentAddressError()
    const wanted = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family
    const found = await this.#resolve(host)
    const permitted = this.#permitted(host, found, port).filter((address) => wanted === 0 || address.family === wanted)
    if (permitted.length === 0) throw new AgentAddressError()
    return permitted
  }

  /** What can be said of a host without asking anybody. */
  #refusesHost(host: string, port: number): boolean {
    const address = ipAddress(host)
    if (address !== undefined) return this.#permitted(host, [{ address: host, family: 0 }], port).length === 0
    return host === '' || ALWAYS_REFUSED.hasHost(host) || this.#deny.hasHost(host)
  }

  #isOwn(text: string, port: number): boolean {
    const address = ipAddress(text)
    return address !== undefined && this.#own.has(address, port)
  }

  /** Those of a host's addresses that may be called. Refused ones are left out: nobody connects to them. */
  #permitted(host: string, addresses: readonly LookupAddress[], port: number): LookupAddress[] {
    return addresses.filter(({ address: text }) => {
      const address = ipAddress(text)
      return address !== undefined && this.#listsPermit(host, address) && !this.#own.has(address, port)
    })
  }

  #listsPermit(host: string, address: IpAddress): boolean {
    if (ALWAYS_REFUSED.reaches(address) || this.#deny.reaches(address)) return false
    return this.#allow.empty || this.#allow.hasHost(host) || this.#allow.hasAddress(address)
  }
}

function resolveBySystem(hostname: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
}
