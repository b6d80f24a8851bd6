import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

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

/**
 * The addresses that are refused even if the operator allows them: addresses of no host, addresses that
 * reach only the local link, and the services from which clouds serve the credentials of the machine.
 */
export const ALWAYS_REFUSED = new AddressList('always refused', [
  // Unspecified: a connection to it reaches this machine.
  '0.0.0.0/8',
  '::',
  // Link-local; 169.254.169.254 and its neighbors are the metadata services of most clouds.
  '169.254.0.0/16',
  'fe80::/10',
  // Multicast and broadcast.
  '224.0.0.0/4',
  '255.255.255.255',
  'ff00::/8',
  // Metadata and credentials: AWS over IPv6, Google over IPv6, Alibaba, Oracle, Azure's host.
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'metadata.google.internal',
  'metadata.goog',
])

/** IPv4 blocks that are not globally reachable (IANA Special-Purpose Address Registry), and multicast. */
const SPECIAL_IPV4 = new AddressList('special IPv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])

/** The only IPv6 block with public addresses. */
const GLOBAL_UNICAST = new AddressList('global unicast', ['2000::/3'])

/** Parts of it that are not globally reachable, or whose traffic a relay forwards to an IPv4 address. */
const SPECIAL_IPV6 = new AddressList('special IPv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** Returns `true` for an address of the public internet. */
export function isPublic(address: IpAddress): boolean {
  if (address.family === 'ipv4') return !SPECIAL_IPV4.hasAddress(address)
  if (!GLOBAL_UNICAST.hasAddress(address) || SPECIAL_IPV6.hasAddress(address)) return false
  return address.embedded.every((text) => {
    const inner = ipAddress(text)
    return inner !== undefined && isPublic(inner)
  })
}

/** An IP address in a comparable form, with the IPv4 addresses that are embedded in it. */
export interface IpAddress {
  readonly family: 'ipv4' | 'ipv6'
  readonly text: string
  /** IPv4 addresses inside an IPv6 address, to which gateways of the network may forward a connection. */
  readonly embedded: readonly string[]
}

/**
 * Parses an address in the form of the resolver, or of a URL's host without its brackets. IPv4 in IPv6
 * notation (`::ffff:127.0.0.1`) becomes IPv4, because the connection goes there. Returns undefined for any
 * other text.
 */
export function ipAddress(text: string): IpAddress | undefined {
  // A zone such as %eth0 selects an interface, not an address.
  const [address = ''] = text.split('%', 1)
  if (isIPv4(address)) return { family: 'ipv4', text: address, embedded: [] }
  if (!isIPv6(address)) return undefined
  const groups = groupsOf(address)
  if (isZero(groups.slice(0, 5)) && groups[5] === 0xffff) {
    return { family: 'ipv4', text: ipv4At(groups, 6), embedded: [] }
  }
  return { family: 'ipv6', text: address, embedded: embeddedIn(groups) }
}

/** Returns the IPv4 addresses that are embedded in an IPv6 address in any well-known way. */
function embeddedIn(groups: readonly number[]): readonly string[] {
  const [first = 0, second = 0, third = 0] = groups
  // IPv4-compatible (RFC 4291, 2.5.5.1), except :: and ::1.
  if (isZero(groups.slice(0, 6)) && (groups[6] !== 0 || (groups[7] ?? 0) > 1)) return [ipv4At(groups, 6)]
  // IPv4-translated (RFC 2765).
  if (isZero(groups.slice(0, 4)) && groups[4] === 0xffff && groups[5] === 0) return [ipv4At(groups, 6)]
  // NAT64, well-known and local (RFC 6052, RFC 8215): a local address may contain it after 48 bits, around a
  // byte of zeros.
  if (first === 0x64 && second === 0xff9b) {
    return third === 1 ? [ipv4At(groups, 6), ipv4After48(groups)] : [ipv4At(groups, 6)]
  }
  // 6to4 (RFC 3056).
  if (first === 0x2002) return [ipv4At(groups, 1)]
  // Teredo (RFC 4380): the server, and the client with inverted bits.
  if (first === 0x2001 && second === 0)
    return [
      ipv4At(groups, 2),
      ipv4At(
        groups.map((group) => group ^ 0xffff),
        6,
      ),
    ]
  // ISATAP (RFC 5214).
  if (groups[5] === 0x5efe && ((groups[4] ?? 0) & ~0x0200) === 0) return [ipv4At(groups, 6)]
  return []
}

/** Returns the eight groups of a valid IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const [head = '', tail] = address.split('::', 2)
  const before = parts(head)
  if (tail === undefined) return before
  const after = parts(tail)
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
}

function parts(text: string): readonly number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

function isZero(groups: readonly number[]): boolean {
  return groups.every((group) => group === 0)
}

function ipv4At(groups: readonly number[], at: number): string {
  const [high = 0, low = 0] = groups.slice(at, at + 2)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function ipv4After48(groups: readonly number[]): string {
  const [a = 0, b = 0, c = 0] = groups.slice(3, 6)
  return [a >> 8, a & 255, b & 255, c >> 8].join('.')
}
