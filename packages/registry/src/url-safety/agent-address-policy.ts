import type { LookupAddress } from 'node:dns'

import {
  AddressList,
  ALWAYS_REFUSED,
  checkedLookup,
  hostName,
  ipAddress,
  OwnAddresses,
  portOf,
  resolveBySystem,
} from '@signalbox/http-kit'
import type { AddressLookup, IpAddress, ListeningAddress, ResolveHost } from '@signalbox/http-kit'

export interface AgentAddressOptions {
  /**
   * The only allowed addresses: addresses, CIDR blocks, hosts, and patterns such as `*.example.com`.
   * @default [], which allows all
   */
  readonly allow?: readonly string[]
  /** Refused addresses, even if `allow` lists them; in the same form as `allow`. @default [] */
  readonly deny?: readonly string[]
  /**
   * Returns the addresses on which the server itself listens; agents are never called there. Called for each
   * check. @default none
   */
  readonly ownAddresses?: () => readonly ListeningAddress[]
  /** Resolves names. @default the name servers of the system, by `resolveBySystem` */
  readonly resolve?: ResolveHost
}

/** The text for callers. It is the same for every refusal, so that callers cannot explore the broker's network. */
function allowedText(deny: boolean, allow: boolean): string {
  const rules = [
    'not link-local (cloud metadata)',
    'not a listener of the broker itself',
    ...(deny ? ['not in CONNECTORSA2_A_AGENT_URL_DENY'] : []),
    ...(allow ? ['in CONNECTORSA2_A_AGENT_URL_ALLOW'] : []),
  ]
  return `a URL whose address the broker may call: ${rules.join(', ')}`
}

/** The error for an agent whose address may not be called. */
export class AgentAddressError extends Error {
  override readonly name = 'AgentAddressError'
  readonly code = 'AGENT_ADDRESS_REFUSED'

  constructor() {
    super('the address of the agent may not be called')
  }
}

/**
 * The policy for the addresses of agents. It is applied twice, because a name may resolve to another address
 * later: at the registration, by {@link check}, and before each call, by {@link hostCheck} and {@link
 * lookupFor}.
 */
export class AgentAddressPolicy {
  readonly #allow: AddressList
  readonly #deny: AddressList
  readonly #own: OwnAddresses
  readonly #allowedText: string
  /** Resolves names, without a check of the addresses. */
  readonly resolve: ResolveHost

  /** @throws RangeError for an entry of a list that is neither an address nor a host */
  constructor(options: AgentAddressOptions = {}) {
    this.#allow = new AddressList('agent url allow list', options.allow ?? [])
    this.#deny = new AddressList('agent url deny list', options.deny ?? [])
    this.#allowedText = allowedText(!this.#deny.empty, !this.#allow.empty)
    this.#own = new OwnAddresses(options.ownAddresses ?? (() => []))
    this.resolve = options.resolve ?? resolveBySystem
  }

  /**
   * Checks the host of a url and the addresses that it resolves to now. A name without an address passes:
   * agents are often registered before their names are known, and every call is checked again.
   * @param account The account that the lookup counts against
   * @returns a general description of the allowed urls when the url is refused; otherwise undefined
   */
  async check(url: URL, account?: string): Promise<string | undefined> {
    const host = hostName(url.hostname)
    const port = portOf(url)
    if (this.#refusesHost(host, port)) return this.#allowedText
    if (ipAddress(host) !== undefined) return undefined
    const addresses = await this.resolve(host, account).catch(() => [])
    // One of the server's own addresses refuses the whole name: its other addresses hardly belong to another
    // server.
    if (addresses.some(({ address }) => this.#isOwn(address, port))) return this.#allowedText
    return addresses.length > 0 && this.#permitted(host, addresses, port).length === 0 ? this.#allowedText : undefined
  }

  /**
   * Prepares the check that precedes each connection to a URL. It is needed because Node calls no `lookup`
   * for a host that is an address. The lists do not change; the addresses on which the server listens may.
   * @returns a function that returns true while the URL may be called
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
   * Creates the lookup for connections to one port. It resolves a name to the addresses that may be called,
   * and fails with {@link AgentAddressError} when there are none.
   * @param account The account that the lookups count against
   */
  lookupFor(url: Pick<URL, 'port' | 'protocol'>, account?: string): AddressLookup {
    const port = portOf(url)
    const permitted = async (hostname: string): Promise<readonly LookupAddress[]> => {
      const host = hostName(hostname)
      return this.#refusesHost(host, port) ? [] : this.#permitted(host, await this.resolve(host, account), port)
    }
    return checkedLookup(permitted, () => new AgentAddressError())
  }

  /** Checks a host without resolving it. */
  #refusesHost(host: string, port: number): boolean {
    const address = ipAddress(host)
    if (address !== undefined) return this.#permitted(host, [{ address: host, family: 0 }], port).length === 0
    return host === '' || ALWAYS_REFUSED.hasHost(host) || this.#deny.hasHost(host)
  }

  #isOwn(text: string, port: number): boolean {
    const address = ipAddress(text)
    return address !== undefined && this.#own.has(address, port)
  }

  /** Returns the host's addresses that may be called. */
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
