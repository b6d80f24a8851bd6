import type { IncomingHttpHeaders } from 'node:http'

/** The header with the number of brokers that a request to an agent has passed, in lower case. */
const HOPS_HEADER = 'x-broker-hops'

/** The most brokers that a request may have passed. */
export const MAX_AGENT_HOPS = 8

/** A larger number is not a plausible count. */
const HOPS = /^\d{1,6}$/

/**
 * Returns the number of brokers that a request has passed: 0 without the header, the largest number if proxies joined
 * several headers, and `Infinity` for a value that is not a number.
 */
export function hopsOf(headers: IncomingHttpHeaders): number {
  const header = headers[HOPS_HEADER]
  if (header === undefined) return 0
  // Node joins headers of one name with commas.
  const parts = String(header).slice(0, 64).split(',')
  return Math.max(...parts.map((part) => (HOPS.test(part.trim()) ? Number(part) : Infinity)))
}

/** Returns the problem of a request that has passed too many brokers; `undefined` for other requests. */
export function hopsProblem(hops: number): string | undefined {
  if (hops <= MAX_AGENT_HOPS) return undefined
  const many = hops === Infinity ? 'an unknown number of brokers' : `${hops} brokers`
  return `the request has passed through ${many} (X-Broker-Hops); at most ${MAX_AGENT_HOPS} are allowed. Look for agents that call each other in a loop`
}
