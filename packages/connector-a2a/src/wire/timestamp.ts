const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/
const ISO_8601 =
  /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?$/

/** The times that Protocol Buffers can hold: the years 1 to 9999, in ms. */
const MIN_MS = Date.parse('0001-01-01T00:00:00Z')
const MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Returns a time in RFC 3339 with `Z`, the only form that all parsers of Protocol Buffers accept. A time without a zone
 * is UTC. Digits after the ninth of a fraction are dropped. Returns undefined if the value is not a time.
 */
export function utcTimestamp(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const parts = ISO_8601.exec(value)
  if (parts === null) return undefined
  const [, date = '', time = '', fraction = '', sign, hours = '0', minutes = '0'] = parts
  const local = Date.parse(`${date}T${time}Z`)
  // Date.parse turns February 30 into March 2.
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(`${date}T${time}`)) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const utc = sign === undefined ? local : sign === '+' ? local - offset : local + offset
  if (utc < MIN_MS || utc > MAX_MS) return undefined
  if (RFC_3339_UTC.test(value)) return value
  return `${new Date(utc).toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction.slice(0, 9)}`}Z`
}
