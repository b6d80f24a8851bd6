import { milliseconds } from '../gateway/timeout.ts'

const WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i

/** Returns the time of `Prefer: wait=n` (RFC 7240, section 4.3), given in seconds, in ms; undefined if absent or 0. */
export function preferredWaitMs(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header : header?.join(', ')
  const seconds = Number((text === undefined ? undefined : WAIT.exec(text)?.[1]) ?? 0)
  return seconds > 0 ? milliseconds(seconds) : undefined
}
