import type { LookupAddress } from 'node:dns'
import type { Resolver } from 'node:dns/promises'

/** The time to wait for the addresses of the other family, in ms, once one family has any. */
const GRACE_MS = 250

/** The reasons for which a name has no address; any other is temporary. */
const ABSENT: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME', 'EBADQUERY'])

/** The addresses of a name, IPv4 first. */
export interface FoundAddresses {
  readonly addresses: readonly LookupAddress[]
  /** The time for which they are valid, in seconds; 0 if a family gave no answer. */
  readonly ttl: number
}

/** A name without addresses. The codes are the same as those of `getaddrinfo`. */
export class NameError extends Error {
  override readonly name = 'NameError'
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN'
  /** `true` if another name of the search list may still have addresses. */
  readonly answered: boolean

  constructor(code: NameError['code'], hostname: string, answered = true) {
    super(code === 'ENOTFOUND' ? `${hostname} has no address` : `no name server knows the address of ${hostname} now`)
    this.code = code
    this.answered = answered
  }
}

/**
 * Asks for the IPv4 and the IPv6 addresses of a full name at the same time. One family is enough: some name servers
 * never answer for the other.
 * @throws NameError
 */
export function queryName(resolver: Resolver, name: string): Promise<FoundAddresses> {
  const found: (LookupAddress & { readonly ttl: number })[] = []
  const failures: string[] = []
  let open = 2
  let timer: NodeJS.Timeout | undefined
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer)
      const lasting = failures.every((code) => ABSENT.has(code))
      if (found.length === 0) {
        const refused = failures.some((code) => code === 'ESERVFAIL')
        reject(new NameError(lasting ? 'ENOTFOUND' : 'EAI_AGAIN', name, lasting || refused))
        return
      }
      const addresses = found
        .toSorted((a, b) => a.family - b.family)
        .map(({ address, family }) => ({ address, family }))
      resolve({ addresses, ttl: open === 0 && lasting ? Math.min(...found.map(({ ttl }) => ttl)) : 0 })
    }
    const ask = async (family: 4 | 6): Promise<void> => {
      try {
        const options = { ttl: true } as const
        const records = await (family === 4 ? resolver.resolve4(name, options) : resolver.resolve6(name, options))
        found.push(...records.map(({ address, ttl }) => ({ address, family, ttl })))
      } catch (error) {
        failures.push(error instanceof Error && 'code' in error ? String(error.code) : '')
      }
      open--
      if (open === 0) settle()
      else if (found.length > 0) timer = setTimeout(settle, GRACE_MS)
    }
    void ask(4)
    void ask(6)
  })
}
