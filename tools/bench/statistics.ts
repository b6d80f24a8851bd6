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
