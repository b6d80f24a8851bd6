import { BlockList, isIP } from 'node:net'

import type { IpAddress } from './ip-address.ts'

const HOST = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/

/** Returns a host in the form that is compared: lower case, without brackets and without the trailing dot. */
export function hostName(host: string): string {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  return bare.toLowerCase().replace(/\.$/, '')
}

/** Addresses and hosts in the form in which operators list them. */
export class AddressList {
  readonly #addresses = new BlockList()
  readonly #hosts = new Set<string>()
  /** `.example.com` for `*.example.com`. */
  readonly #suffixes: string[] = []
  readonly empty: boolean

  /**
   * @param entries Each is an address (`10.1.2.3`), a block (`10.0.0.0/8`, `fd00::/8`), a host
   * (`agents.example.com`), or a pattern for all hosts below one (`*.example.com`, which does not include
   * `example.com`).
   * @throws RangeError for an entry in another form
   */
  constructor(name: string, entries: readonly string[]) {
    for (const entry of entries) {
      if (!this.#add(entry.trim())) {
        throw new RangeError(
          `${name}: an entry is ${JSON.stringify(entry)}; it must be an address, a CIDR block such as 10.0.0.0/8, a host, or a pattern such as *.example.com`,
        )
      }
    }
    this.empty = entries.length === 0
  }

  #add(entry: string): boolean {
    const [base = '', bits, ...more] = entry.split('/')
    const family = isIP(hostName(base))
    if (family !== 0) {
      const length = family === 4 ? 32 : 128
      const prefix = bits === undefined ? length : /^\d{1,3}$/.test(bits) ? Number(bits) : length + 1
      if (prefix > length || more.length > 0) return false
      this.#addresses.addSubnet(hostName(base), prefix, family === 4 ? 'ipv4' : 'ipv6')
      return true
    }
    const host = hostName(entry)
    // A malformed address is a typing mistake, not a host.
    if (!HOST.test(host) || /(?:^|\.)[0-9]+$/.test(host)) return false
    if (host.startsWith('*.')) this.#suffixes.push(host.slice(1))
    else this.#hosts.add(host)
    return true
  }

  hasHost(host: string): boolean {
    return (
      this.#hosts.has(host) || this.#suffixes.some((suffix) => host.endsWith(suffix) && host.length > suffix.length)
    )
  }

  /** Returns true when the list contains the address itself. */
  hasAddress({ family, text }: IpAddress): boolean {
    return this.#addresses.check(text, family)
  }

  /** Returns true when the list contains the address, or an IPv4 address that is embedded in it. */
  reaches(address: IpAddress): boolean {
    return this.hasAddress(address) || address.embedded.some((inner) => this.#addresses.check(inner, 'ipv4'))
  }
}
