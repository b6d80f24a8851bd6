/** Periods, by the clock of `performance.now()`, in which a process was frozen or struck. */
export class Spells {
  readonly #spells: { readonly from: number; to: number }[] = []

  begin(at = performance.now()): void {
    this.#spells.push({ from: at, to: Number.POSITIVE_INFINITY })
  }

  /** Ends the period that began last. */
  end(at = performance.now()): void {
    const last = this.#spells.at(-1)
    if (last !== undefined) last.to = at
  }

  /** Returns the part of the time from `from` to `to` that lies in periods, in milliseconds. */
  overlapMs(from: number, to: number): number {
    return this.#spells.reduce(
      (sum, spell) => sum + Math.max(0, Math.min(to, spell.to) - Math.max(from, spell.from)),
      0,
    )
  }
}
