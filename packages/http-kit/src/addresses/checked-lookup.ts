import type { LookupAddress, LookupOptions } from 'node:dns'

import { NameError } from '../names/name-query.ts'
import type { ResolveHost } from '../names/name-resolver.ts'

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
 * Creates the lookup of connections that may reach only some addresses.
 * @param permitted Returns the addresses of a name that may be called; of all families
 * @param none Creates the error for a name that has no such address of the family
 */
export function checkedLookup(
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
