function sorted(values: readonly number[]): number[] {
  return values.toSorted((a, b) => a - b)
}

/** The value below which the share `p` (0 to 1) of the values lies. */
export function quantile(values: readonly number[], p: number): number {
  const ordered = sorted(values)
  const position = (ordered.length - 1) * p
  const low = ordered[Math.floor(position)]
  const high = ordered[Math.ceil(position)]
  if (low === undefined || high === undefined) throw new RangeError('no values')
  return low + (high - low) * (position - Math.floor(position))
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The median of values, their 99th percentile, and the largest. */
export interface Spread {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Without values all are `NaN`. */
export function spreadOf(values: readonly number[]): Spread {
  const at = (p: number): number => (values.length === 0 ? Number.NaN : quantile(values, p))
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

export function spreadText({ p50, p99, max }: Spread, digits = 2): string {
  return `p50 ${p50.toFixed(digits)} ms, p99 ${p99.toFixed(digits)} ms, max ${max.toFixed(digits)} ms`
}

/** Returns the lines of a table in Markdown. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

/** Returns lines of columns; the first column is left-aligned, the others right-aligned. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  )
}
