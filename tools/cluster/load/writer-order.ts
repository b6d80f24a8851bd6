/** Whether the entries of each writer, `{writer}#{n}`, stand in the order in which it wrote them. */
export class WriterOrder {
  readonly problems: string[] = []
  readonly #last = new Map<string, { readonly n: number; readonly sequence: number }>()
  #seen = 0

  /** Entries may be shown again, by another reader; each counts once. */
  take(sequence: number, body: string): void {
    if (sequence <= this.#seen) return
    this.#seen = sequence
    const [writer = '', n = ''] = body.split('#')
    const before = this.#last.get(writer)
    if (before !== undefined && Number(n) < before.n) {
      this.problems.push(`${body} at ${sequence} stands behind ${writer}#${before.n} at ${before.sequence}`)
    }
    this.#last.set(writer, { n: Number(n), sequence })
  }
}
