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
import type { AddressLookup, ListeningAddress, ResolveHost } from '@signalbox/http-kit'

import { WebhookError } from '../errors.ts'
import { isPublic } from './public-addresses.ts'

export interface EndpointPolicyOptions {
  /**
   * Addresses, CIDR blocks, hosts, and patterns such as `*.example.com` that may be called in addition to public
   * addresses; also by plain http. Addresses of the local link and of cloud metadata stay refused. @default []
   */
  readonly allow?: readonly string[]
  /** Returns the addresses on which the server itself listens; they are never called. @default none */
  readonly ownAddresses?: () => readonly ListeningAddress[]
  /** Resolves a name to all its addresses. @default the name servers of the system, by `resolveBySystem` */
  readonly resolve?: ResolveHost
}

/** The longest URL of an endpoint, in characters. */
const MAX_URL = 2_048

/** One text for every refused address, so that callers cannot explore the network of the server. */
const REFUSED =
  'the endpoint may not be called; its host must have public addresses, or WEBHOOKS_ALLOW must list it; plain http needs WEBHOOKS_ALLOW'

/** A URL, as far as its connection depends on it. */
export type EndpointOrigin = Pick<URL, 'hostname' | 'port' | 'protocol'>

/**
 * The policy for the addresses of endpoints. It is applied when an endpoint is registered, by {@link check}, and again
 * for each connection, by {@link permitsHost} and {@link lookupFor}: a name may resolve to another address later.
 */
export class EndpointPolicy {
  readonly #allow: AddressList
  readonly #own: OwnAddresses
  readonly #resolve: ResolveHost

  /** @throws RangeError for an entry of the list that is neither an address nor a host */
  constructor({ allow = [], ownAddresses = () => [], resolve = resolveBySystem }: EndpointPolicyOptions = {}) {
    this.#allow = new AddressList('WEBHOOKS_ALLOW', allow)
    this.#own = new OwnAddresses(ownAddresses)
    this.#resolve = resolve
  }

  /**
   * Checks the URL of an endpoint, and the addresses of its host.
   * @param account The account that the lookup counts against
   * @throws WebhookError ENDPOINT_REFUSED
   */
  async check(text: string, account?: string): Promise<URL> {
    const url = text.length <= MAX_URL && URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
      throw refused(`the URL of the endpoint must be an https URL of at most ${MAX_URL} characters`)
    }
    if (url.username !== '' || url.password !== '')
      throw refused('the URL of the endpoint must not contain credentials')
    if (url.hash !== '') throw refused('the URL of the endpoint must not contain a fragment')
    const host = hostName(url.hostname)
    if (ipAddress(host) !== undefined) {
      if (!this.permitsHost(url)) throw refused(REFUSED)
      return url
    }
    const found = this.permitsHost(url) ? await this.#resolve(host, account).catch(() => []) : []
    if (found.length === 0 || this.#permitted(url, host, found).length < found.length) throw refused(REFUSED)
    return url
  }

  /** Returns `true` if the host of a URL may be called, without resolving it. Node calls no `lookup` for an address. */
  permitsHost(url: EndpointOrigin): boolean {
    const host = hostName(url.hostname)
    if (host === '' || ALWAYS_REFUSED.hasHost(host)) return false
    return ipAddress(host) === undefined || this.#permitted(url, host, [{ address: host, family: 0 }]).length > 0
  }

  /**
   * Creates the `lookup` of connections to an origin, which count against one account: `Slots` limits them. It resolves a name to
   * the addresses that may be called.
   */
  lookupFor(url: EndpointOrigin): AddressLookup {
    const permitted = async (hostname: string): Promise<readonly LookupAddress[]> => {
      const host = hostName(hostname)
      return this.permitsHost(url) ? this.#permitted(url, host, await this.#resolve(host, 'webhooks')) : []
    }
    return checkedLookup(permitted, () =>
      refused('the endpoint may not be called: its host has no permitted address now'),
    )
  }

  #permitted(url: EndpointOrigin, host: string, addresses: readonly LookupAddress[]): LookupAddress[] {
    const port = portOf(url)
    const needsList = url.protocol !== 'https:'
    return addresses.filter(({ address: text }) => {
      const address = ipAddress(text)
      if (address === undefined || ALWAYS_REFUSED.reaches(address) || this.#own.has(address, port)) return false
      if (this.#allow.hasHost(host) || this.#allow.hasAddress(address)) return true
      return !needsList && isPublic(address)
    })
  }
}

function refused(problem: string): WebhookError {
  return new WebhookError('ENDPOINT_REFUSED', problem)
}
