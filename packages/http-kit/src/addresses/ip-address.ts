import { isIPv4, isIPv6 } from 'node:net'

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
