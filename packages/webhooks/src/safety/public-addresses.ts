import type { IpAddress } from '@signalbox/http-kit'
import { AddressList, ipAddress } from '@signalbox/http-kit'

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
