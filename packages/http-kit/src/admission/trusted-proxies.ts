import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

import type { AuthenticationRequest } from '../authenticator.ts'

/** The longest list of addresses that is read from a header, in characters. */
const MAX_HEADER = 2_048

const ADDRESS = Symbol('client address')

/** On the request itself: one header is read once, for limits, audit and logs alike. */
interface Addressed {
  [ADDRESS]?: string
}

/** Returns where a request came from: what a trusted proxy says where {@link TrustedProxies} was asked, else the peer. */
export function addressOf(request: Pick<AuthenticationRequest, 'socket'> & Addressed): string | undefined {
  return request[ADDRESS] ?? request.socket?.remoteAddress
}

/** Returns where a trusted proxy says a request came from; undefined where none says it. */
export function forwardedAddressOf(request: IncomingMessage & Addressed): string | undefined {
  return request[ADDRESS]
}

/** The reverse proxies whose `Forwarded` or `X-Forwarded-For` names the client. */
export class TrustedProxies {
  readonly #proxies = new BlockList()
  readonly #any: boolean

  /**
   * @param list Addresses and CIDR ranges, such as `10.0.0.0/8` and `::1`
   * @throws RangeError for an entry that is neither
   */
  constructor(list: readonly string[] = []) {
    this.#any = list.length > 0
    for (const entry of list) this.#add(entry)
  }

  /** Whether the address is a trusted proxy's. */
  includes(address: string): boolean {
    if (!this.#any) return false
    const plain = withoutMapping(address)
    const family = isIP(plain)
    return family !== 0 && this.#proxies.check(plain, family === 6 ? 'ipv6' : 'ipv4')
  }

  /**
   * Finds the client's address: the peer's, or, where that is a trusted proxy's, the last address in the header that is
   * none. {@link addressOf} returns it from then on. An address that is no IP address ends the search.
   */
  locate(request: IncomingMessage & Addressed): void {
    if (!this.#any) return
    const { remoteAddress } = request.socket
    if (remoteAddress === undefined || !this.includes(remoteAddress)) return
    let found = remoteAddress
    for (const address of forwardedFor(request).toReversed()) {
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

/** The addresses that proxies added, the client's first (RFC 7239 before the de facto header). */
function forwardedFor({ headers }: IncomingMessage): readonly string[] {
  const { forwarded } = headers
  if (typeof forwarded === 'string') {
    if (forwarded.length > MAX_HEADER) return []
    return forwarded.split(',').map((element) => {
      const pair = element.split(';').find((part) => part.trim().toLowerCase().startsWith('for='))
      return pair === undefined ? '' : pair.slice(pair.indexOf('=') + 1).trim()
    })
  }
  const list = headers['x-forwarded-for']
  const text = Array.isArray(list) ? list.join(',') : list
  return text === undefined || text.length > MAX_HEADER ? [] : text.split(',')
}

/** The IP address in `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]:80` and the quoted forms of these. */
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

/** `::ffff:1.2.3.4` is the IPv4 address 1.2.3.4 on a socket that takes both. */
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
