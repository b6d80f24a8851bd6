const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(?:Z|[+-]\d{2}:\d{2})$/

/** What {@link parseTimestamp} takes, for messages to the caller. */
export const TIMESTAMP_FORM =
  'an ISO 8601 timestamp with date, time and time zone, such as "2026-01-31T09:30:00Z" or "2026-01-31T09:30:00.250+01:00"'

/**
 * Milliseconds since the epoch, or undefined when the text is not a complete ISO 8601 timestamp. A time zone is demanded:
 * without one, caller and server could mean different moments. What is finer than a millisecond rounds up, so that "from
 * this time on" never includes an earlier event. That the day exists (there is no 30th of February) is for the schema's
 * format `date-time` to check.
 */
export function parseTimestamp(text: string): number | undefined {
  const parts = ISO_8601.exec(text)
  if (!parts) return undefined
  const [, fraction = ''] = parts
  const milliseconds = Date.parse(text)
  if (Number.isNaN(milliseconds)) return undefined
  return /[1-9]/.test(fraction.slice(3)) ? milliseconds + 1 : milliseconds
}
