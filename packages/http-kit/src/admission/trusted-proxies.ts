import { BlockList, isIP } from 'node:net'

import type { AuthenticationRequest } from '../authentication/authenticator.ts'
import type { HttpRequest } from '../surface/http-message.ts'

/** The longest forwarding header that is read, in characters. */
const MAX_HEADER = 2_048

const ADDRESS = Symbol('client address')

/** The address is stored on the request, so that limits, audit log and logs read the header once. */
interface Addressed {
  [ADDRESS]?: string
}

/** Returns the client's address: as {@link TrustedProxies.locate} found it, otherwise the peer's. */
export function addressOf(request: Pick<AuthenticationRequest, 'socket'> & Addressed): string | undefined {
  return request[ADDRESS] ?? request.socket?.remoteAddress
}

/** Returns the client's address as a trusted proxy reports it, or `undefined` without such a report. */
export function forwardedAddressOf(request: HttpRequest & Addressed): string | undefined {
  return request[ADDRESS]
}

/** The headers in which a proxy can name the client: the usual one, and that of RFC 7239. */
export const PROXY_HEADERS = ['x-forwarded-for', 'forwarded'] as const

export type ProxyHeader = (typeof PROXY_HEADERS)[number]

/** The reverse proxies that name the client in a header. */
export class TrustedProxies {
  readonly #proxies = new BlockList()
  readonly #any: boolean
  readonly #header: ProxyHeader

  /**
   * @param list Addresses and CIDR ranges, such as `10.0.0.0/8` and `::1`
   * @param header The header that the proxies set. The other one is ignored: proxies pass it on as the client sent it.
   * @throws RangeError for an entry that is neither
   */
  constructor(list: readonly string[] = [], header: ProxyHeader = 'x-forwarded-for') {
    this.#header = header
    this.#any = list.length > 0
    for (const entry of list) this.#add(entry)
  }

  /** Returns `true` if the address belongs to a trusted proxy. */
  includes(address: string): boolean {
    if (!this.#any) return false
    const plain = withoutMapping(address)
    const family = isIP(plain)
    return family !== 0 && this.#proxies.check(plain, family === 6 ? 'ipv6' : 'ipv4')
  }

  /**
   * Finds the client's address. Without a trusted proxy it is the peer's address; otherwise it is the last address in
   * the header that is not a trusted proxy. An invalid IP address ends the search. {@link addressOf} returns the
   * address afterwards.
   */
  locate(request: HttpRequest & Addressed): void {
    if (!this.#any) return
    const { remoteAddress } = request.socket
    if (remoteAddress === undefined || !this.includes(remoteAddress)) return
    let found = remoteAddress
    for (const address of addressesIn(request, this.#header).toReversed()) {
      const plain = addressIn(address)
      if (plain === undefined) break
      found = plain
      if (!this.includes(plain)) break
    }
    request[ADDRESS] = found
  }

  #add(entry: string): void {
    const [address = '', prefix, ...rest] = entry.split('/')
    const family = isIP(address)
    const bits = family === 6 ? 128 : 32
    const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
    if (family === 0 || rest.length > 0 || !(length <= bits)) {
      throw new RangeError(`${JSON.stringify(entry)} is not an address or CIDR range; write one such as 10.0.0.0/8`)
    }
    this.#proxies.addSubnet(address, length, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Returns the addresses that proxies added to the header, the client's first. */
function addressesIn({ headers }: HttpRequest, header: ProxyHeader): readonly string[] {
  const list = headers[header]
  const text = Array.isArray(list) ? list.join(',') : list
  if (text === undefined || text.length > MAX_HEADER) return []
  const elements = text.split(',')
  if (header === 'x-forwarded-for') return elements
  return elements.map((element) => {
    const pair = element.split(';').find((part) => part.trim().toLowerCase().startsWith('for='))
    return pair === undefined ? '' : pair.slice(pair.indexOf('=') + 1).trim()
  })
}

/** Returns the IP address in `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]:80` and their quoted forms. */
function addressIn(text: string): string | undefined {
  let address = text.trim()
  if (address.startsWith('"') && address.endsWith('"')) address = address.slice(1, -1)
  if (address.startsWith('[')) {
    const end = address.indexOf(']')
    address = address.slice(1, end === -1 ? undefined : end)
  } else if (isIP(address) === 0 && address.includes(':')) {
    address = address.slice(0, address.lastIndexOf(':'))
  }
  return isIP(address) === 0 ? undefined : withoutMapping(address)
}

/** Converts an IPv4-mapped IPv6 address such as `::ffff:1.2.3.4`, which dual-stack sockets report, to IPv4. */
function withoutMapping(address: string): string {
  const v4 = address.toLowerCase().startsWith('::ffff:') ? address.slice(7) : ''
  return isIP(v4) === 4 ? v4 : address
}

/** Returns the network that limits count an anonymous caller by: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  const plain = withoutMapping(address)
  return isIP(plain) === 6 ? `${first64Bits(plain)}::/64` : plain
}

function first64Bits(address: string): string {
  const zone = address.indexOf('%')
  const [head = '', tail] = (zone === -1 ? address : address.slice(0, zone)).toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0)
    const zeros = 8 - groups.length - after
    groups.push(...Array.from({ length: zeros }, () => '0'), ...(tail === '' ? [] : tail.split(':')))
  }
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0{1,3}(?=.)/, ''))
    .join(':')
}
