/** Servers count nanoseconds since 1970 in 63 bits. Expiries beyond a hundred years are left to the nodes. */
const MAX_SECONDS = 100 * 365 * 24 * 3_600

/**
 * Returns the time for which the servers keep a message that no node removes, in whole seconds: until its
 * expiry, and `keptMs` longer for a client that may still hold it. Returns undefined for a message that does
 * not expire.
 */
export function timeToLive(expiresAt: number, now: number, keptMs: number): number | undefined {
  if (expiresAt === 0) return undefined
  const seconds = Math.max(1, Math.ceil((expiresAt - now + keptMs) / 1_000))
  return seconds > MAX_SECONDS ? undefined : seconds
}
