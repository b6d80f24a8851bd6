const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const SHORT = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 })

/** Returns a count with separators, such as `12,345`. */
export function count(value: number): string {
  return WHOLE.format(value)
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** Returns a size with three digits, such as `1.21 MiB`. */
export function bytes(value: number): string {
  let unit = 0
  let size = value
  while (size >= 1000 && unit < BYTE_UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${SHORT.format(size)} ${BYTE_UNITS[unit] ?? 'B'}`
}

/** Returns a rate such as `1,210/s`, `0.4/s`. */
export function rate(perSecond: number): string {
  return `${perSecond >= 100 ? WHOLE.format(perSecond) : SHORT.format(perSecond)}/s`
}

/** Returns a time span such as `12 ms`, `3.4 s`, `5 min`, `2 h`, `3 d`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${SHORT.format(ms)} ms`
  if (ms < 60_000) return `${SHORT.format(ms / 1_000)} s`
  if (ms < 3_600_000) return `${WHOLE.format(Math.floor(ms / 60_000))} min`
  if (ms < 172_800_000) return `${WHOLE.format(Math.floor(ms / 3_600_000))} h`
  return `${WHOLE.format(Math.floor(ms / 86_400_000))} d`
}

/** Returns `1 message`, `2 messages`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}
