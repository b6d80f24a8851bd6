import type { IncomingHttpHeaders } from 'node:http'

/** The header that counts the brokers a request to an agent has come through, in lower case. */
const HOPS_HEADER = 'x-broker-hops'

/** The most brokers that a request may have come through. */
export const MAX_AGENT_HOPS = 8

/** Nobody writes a larger number honestly. */
const HOPS = /^\d{1,6}$/

/**
 * Returns how many brokers a request has come through: 0 without the header, the largest number where proxies joined
 * several, and Infinity for what is no number.
 */
export function hopsOf(headers: IncomingHttpHeaders): number {
  const header = headers[HOPS_HEADER]
  if (header === undefined) return 0
  // Node joins headers of one name with commas.
  const parts = String(header).slice(0, 64).split(',')
  return Math.max(...parts.map((part) => (HOPS.test(part.trim()) ? Number(part) : Infinity)))
}

/** Says what is wrong with a request that has come through too many brokers; undefined when it has not. */
export function hopsProblem(hops: number): string | undefined {
  if (hops <= MAX_AGENT_HOPS) return undefined
  const many = hops === Infinity ? 'an unknown number of brokers' : `${hops} brokers`
  return `it has come through ${many} (X-Broker-Hops), and ${MAX_AGENT_HOPS} are allowed; agents call one another in a circle`
}
