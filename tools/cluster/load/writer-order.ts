/** Checks that the entries of each writer, `{writer}#{n}`, are in the order of their writes. */
export class WriterOrder {
  readonly problems: string[] = []
  readonly #last = new Map<string, { readonly n: number; readonly sequence: number }>()
  #seen = 0

  /** Another reader may show entries again; each counts once. */
  take(sequence: number, body: string): void {
    if (sequence <= this.#seen) return
    this.#seen = sequence
    const [writer = '', n = ''] = body.split('#')
    const before = this.#last.get(writer)
    if (before !== undefined && Number(n) < before.n) {
      this.problems.push(`${body} at ${sequence} comes after ${writer}#${before.n} at ${before.sequence}`)
    }
    this.#last.set(writer, { n: Number(n), sequence })
  }
}
