const ISO_8601 =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/

/** The format that {@link parseTimestamp} accepts. */
const TIMESTAMP_FORM =
  'an ISO 8601 timestamp with date, time and time zone, such as "2026-01-31T09:30Z" or "2026-01-31T09:30:00.250+01:00"'

/** Returns the format that {@link parseTimestamp} accepts, with the reason if the text only lacks its time zone. */
export function timestampRefusal(text: string): string {
  const parts = ISO_8601.exec(text)
  return parts !== null && parts[6] === undefined
    ? `${TIMESTAMP_FORM} (it has no time zone, and so could be several moments; add Z for UTC)`
    : TIMESTAMP_FORM
}

/**
 * Returns the time in ms since the epoch, or `undefined` if the text is not a complete ISO 8601 timestamp. Seconds,
 * their fraction, and the colon of the offset are optional. The time zone is required, because caller and server
 * could mean different moments without it.
 *
 * Fractions of a millisecond are rounded up, so that "from this time on" never includes an earlier event.
 */
export function parseTimestamp(text: string): number | undefined {
  const parts = ISO_8601.exec(text)
  if (!parts) return undefined
  const [, date = '', hours, minutes, seconds = '00', fraction = '', zone] = parts
  if (zone === undefined || !isDay(date)) return undefined
  const offset = zone === 'Z' || zone.includes(':') ? zone : `${zone.slice(0, 3)}:${zone.slice(3)}`
  const milliseconds = Date.parse(
    `${date}T${hours}:${minutes}:${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`,
  )
  return /[1-9]/.test(fraction.slice(3)) ? milliseconds + 1 : milliseconds
}

/** Returns `true` if the day exists: `Date` accepts February 30 as March 2. */
function isDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}
