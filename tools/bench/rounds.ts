import { median } from './statistics.ts'

/** An alternative that runs once a round and returns its measurements by name. */
export interface Alternative<Figures extends Readonly<Record<string, number>>> {
  readonly label: string
  readonly run: () => Promise<Figures>
}

/**
 * Runs the alternatives in turn, round after round, in alternating order, so that other load on the machine affects all
 * of them alike. Returns each one's measurements, round by round.
 */
export async function interleave<Figures extends Readonly<Record<string, number>>>(
  rounds: number,
  alternatives: readonly Alternative<Figures>[],
): Promise<readonly (readonly Figures[])[]> {
  const results: Figures[][] = alternatives.map(() => [])
  for (let round = 0; round < rounds; round++) {
    const order = [...alternatives.keys()]
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      const figures = await alternatives[index]?.run()
      if (figures !== undefined) results[index]?.push(figures)
    }
  }
  return results
}

/** Returns the medians of each measurement over the rounds, with `prefix` before its name. */
export function medians(prefix: string, rounds: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = Object.keys(rounds[0] ?? {})
  return Object.fromEntries(
    names.map((name) => [`${prefix} ${name}`, median(rounds.map((figures) => figures[name] ?? Number.NaN))]),
  )
}

/** Returns one ratio a round, from measurements of the same round, so that slow rounds of the machine cancel out. */
export function ratios<Figures>(
  above: readonly Figures[],
  below: readonly Figures[],
  figure: (figures: Figures) => number,
): number[] {
  return above.map((figures, round) => {
    const other = below[round]
    if (other === undefined) throw new RangeError(`round ${round} has no counterpart`)
    return figure(figures) / figure(other)
  })
}
