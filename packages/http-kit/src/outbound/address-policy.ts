import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

import { NameError } from '../names/name-query.ts'
import type { ResolveHost } from '../names/name-resolver.ts'
import type { IpAddress } from './addresses.ts'
import { AddressList, ALWAYS_REFUSED, hostName, ipAddress, isPublic } from './addresses.ts'

/** An address on which the server itself accepts connections. */
export interface ListeningAddress {
  /** An address; `0.0.0.0`, `::` and names mean every address of the machine. */
  readonly host: string
  readonly port: number
}

/** The rules of an {@link AddressPolicy}. */
export interface AddressRules {
  readonly allow: AddressList
  /** Refused addresses, even if `allow` lists them. */
  readonly deny: AddressList
  /** The addresses that may be called although `allow` does not list them. */
  readonly unlisted: 'all' | 'public by https' | 'none'
  /**
   * Refuses a name that has no address yet, and a name with a refused address among others. Otherwise each connection is
   * made to the permitted addresses of the time.
   */
  readonly strict: boolean
  /** Returns the addresses on which the server itself listens. Called for each check: listeners open later. */
  readonly ownAddresses: () => readonly ListeningAddress[]
  readonly resolve: ResolveHost
  /** Creates the error for a name without a permitted address. */
  readonly refusal: () => Error
}

/** A URL, as far as its connection depends on it. */
export type Origin = Pick<URL, 'hostname' | 'port' | 'protocol'>

/**
 * A policy for the addresses that the server may call. It is applied twice, because a name may resolve to another
 * address later: when a URL is registered, by {@link permits}, and for each call, by {@link hostCheck} and {@link
 * lookupFor}. The lists cannot permit `ALWAYS_REFUSED` and the server's own listeners.
 */
export class AddressPolicy {
  /** Resolves names, without a check of the addresses. */
  readonly resolve: ResolveHost
  /** Creates the error for an address that may not be called. */
  readonly refusal: () => Error
  readonly #rules: AddressRules

  constructor(rules: AddressRules) {
    this.#rules = rules
    this.resolve = rules.resolve
    this.refusal = rules.refusal
  }

  /**
   * Returns true if the host of a URL, and the addresses that it resolves to now, may be called.
   * @param account The account that the lookup counts against
   */
  async permits(url: Origin, account?: string): Promise<boolean> {
    if (!this.hostCheck(url)()) return false
    const host = hostName(url.hostname)
    if (ipAddress(host) !== undefined) return true
    const { strict } = this.#rules
    const found = await this.resolve(host, account).catch(() => [])
    if (found.length === 0) return !strict
    // One of the server's own addresses refuses the whole name: its other addresses hardly belong to another server.
    if (found.some(({ address }) => this.#isOwn(ipAddress(address), portOf(url)))) return false
    const permitted = this.#permitted(url, host, found)
    return strict ? permitted.length === found.length : permitted.length > 0
  }

  /**
   * Prepares the check of a host without a lookup, which precedes each call: Node calls no `lookup` for a host that is
   * an address. The lists do not change; the addresses on which the server listens may.
   * @returns a function that returns true while the URL may be called
   */
  hostCheck(url: Origin): () => boolean {
    const host = hostName(url.hostname)
    const address = ipAddress(host)
    if (address === undefined) {
      const refused = this.#refusesName(host)
      return () => !refused
    }
    const port = portOf(url)
    const listed = this.#listsPermit(url, host, address)
    return () => listed && !this.#isOwn(address, port)
  }

  /**
   * Creates the `lookup` of connections to one origin. It resolves a name to the addresses that may be called, and fails
   * with the policy's refusal when there are none.
   * @param account The account that the lookups count against
   */
  lookupFor(url: Pick<URL, 'port' | 'protocol'>, account?: string): AddressLookup {
    const permitted = async (hostname: string): Promise<readonly LookupAddress[]> => {
      const host = hostName(hostname)
      if (this.#refusesName(host)) return []
      return this.#permitted(url, host, await this.resolve(host, account))
    }
    return checkedLookup(permitted, this.refusal)
  }

  #refusesName(host: string): boolean {
    return host === '' || ALWAYS_REFUSED.hasHost(host) || this.#rules.deny.hasHost(host)
  }

  /** Returns the host's addresses that may be called. */
  #permitted(
    url: Pick<URL, 'port' | 'protocol'>,
    host: string,
    addresses: readonly LookupAddress[],
  ): readonly LookupAddress[] {
    const port = portOf(url)
    return addresses.filter(({ address: text }) => {
      const address = ipAddress(text)
      return address !== undefined && this.#listsPermit(url, host, address) && !this.#isOwn(address, port)
    })
  }

  #listsPermit({ protocol }: Pick<URL, 'protocol'>, host: string, address: IpAddress): boolean {
    const { allow, deny, unlisted } = this.#rules
    if (ALWAYS_REFUSED.reaches(address) || deny.reaches(address)) return false
    if (allow.hasHost(host) || allow.hasAddress(address) || unlisted === 'all') return true
    return unlisted === 'public by https' && protocol === 'https:' && isPublic(address)
  }

  /** Returns true when a connection to this address would reach the server itself. */
  #isOwn(address: IpAddress | undefined, port: number): boolean {
    if (address === undefined) return false
    return this.#rules.ownAddresses().some(({ host, port: own }) => {
      if (own !== port) return false
      const texts = [address.text, ...address.embedded]
      if (isIP(host) === 0 || UNSPECIFIED.has(host)) return texts.some(isOfThisMachine)
      const bound = ipAddress(host)
      return texts.some((text) => text === bound?.text)
    })
  }
}

const LOOPBACK = new AddressList('loopback', ['127.0.0.0/8', '::1'])
const UNSPECIFIED: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

function isOfThisMachine(text: string): boolean {
  const address = ipAddress(text)
  if (address !== undefined && LOOPBACK.hasAddress(address)) return true
  return Object.values(networkInterfaces()).some((each) => each?.some((own) => own.address === text) === true)
}

function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void

/** The `lookup` option of `net.connect`, `tls.connect` and agents. */
export type AddressLookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void

/** Creates the lookup of connections that the operator configured: they may reach every address. */
export function lookupBy(resolve: ResolveHost): AddressLookup {
  return checkedLookup(
    (hostname) => resolve(hostname),
    () => new NameError('ENOTFOUND', 'the host'),
  )
}

/**
 * @param permitted Returns the addresses of a name that may be called; of all families
 * @param none Creates the error for a name that has no such address of the family
 */
function checkedLookup(
  permitted: (hostname: string) => Promise<readonly LookupAddress[]>,
  none: () => Error,
): AddressLookup {
  const find = async (hostname: string, { family = 0 }: LookupOptions): Promise<LookupAddress[]> => {
    const wanted = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family
    const addresses = await permitted(hostname)
    const found = wanted === 0 ? [...addresses] : addresses.filter((address) => address.family === wanted)
    if (found.length === 0) throw none()
    return found
  }
  const answer: (...args: Parameters<AddressLookup>) => Promise<void> = async (hostname, options, callback) => {
    let addresses: LookupAddress[]
    try {
      addresses = await find(hostname, options)
    } catch (error) {
      callback(error instanceof Error ? error : none(), options.all === true ? [] : '')
      return
    }
    const [first] = addresses
    if (options.all === true) callback(null, addresses)
    else callback(null, first?.address ?? '', first?.family)
  }
  return (hostname, options, callback) => {
    // An error of the connection's own callback is ignored: it then gets no address, and times out.
    answer(hostname, options, callback).catch(() => {})
  }
}
