/** Servers count nanoseconds from the year 1970 in 63 bits: what lives longer than a hundred years is left to the nodes. */
const MAX_SECONDS = 100 * 365 * 24 * 3_600

/**
 * How long servers keep a message that no node came to remove, in whole seconds: until its expiry, and `keptMs` longer
 * for who may still hold it. Undefined for what never expires.
 */
export function timeToLive(expiresAt: number, now: number, keptMs: number): number | undefined {
  if (expiresAt === 0) return undefined
  const seconds = Math.max(1, Math.ceil((expiresAt - now + keptMs) / 1_000))
  return seconds > MAX_SECONDS ? undefined : seconds
}
