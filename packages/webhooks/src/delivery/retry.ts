/** The first and the longest pause between two attempts, in ms. */
const FIRST_MS = 1_000
const LONGEST_MS = 300_000

/** The longest pause that an endpoint can ask for, in ms. */
const LONGEST_ASKED_MS = 3_600_000

/** Answers with these statuses are tried again; other statuses of 4xx are final for the message. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 425, 429])

/** The result of an attempt: `gone` ends the subscription, `refused` ends the attempts for the message. */
export type Verdict = 'delivered' | 'gone' | 'refused' | 'retry'

/** Returns the verdict on an answer. A redirect is not followed; its message is tried again. */
export function verdictOf(status: number): Verdict {
  if (status >= 200 && status <= 299) return 'delivered'
  if (status === 410) return 'gone'
  if (status >= 400 && status <= 499 && !TEMPORARY.has(status)) return 'refused'
  return 'retry'
}

/** Returns the pause after the failed attempt with this number, from 0, in ms: exponential, with jitter. */
export function pauseAfter(attempt: number, random = Math.random()): number {
  const full = Math.min(FIRST_MS * 2 ** Math.min(attempt, 20), LONGEST_MS)
  return Math.round(full * (0.5 + random / 2))
}

/** Returns the pause that `Retry-After` asks for, in ms: seconds, or a date; 0 without a valid value. */
export function askedPause(header: string | undefined, now: number): number {
  if (header === undefined || header.length > 64) return 0
  const text = header.trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_ASKED_MS) : 0
}
