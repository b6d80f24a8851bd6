/** What the rehearsal expected and how long its steps took. */
export class RehearsalReport {
  readonly #log: (line: string) => void
  readonly #steps: { readonly name: string; readonly seconds: number }[] = []
  readonly #failures: string[] = []
  #expectations = 0

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  get failures(): readonly string[] {
    return this.#failures
  }

  /** Runs a step and notes its duration. A step that throws ends the rehearsal. */
  async step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    this.#log(`\n== ${name}`)
    const started = performance.now()
    try {
      return await work()
    } finally {
      const seconds = (performance.now() - started) / 1000
      this.#steps.push({ name, seconds })
      this.#log(`   ${seconds.toFixed(1)} s`)
    }
  }

  line(text: string): void {
    this.#log(`   ${text}`)
  }

  /** Notes an expectation; `found` says what is there instead. The rehearsal goes on either way. */
  expect(what: string, holds: boolean, found = ''): void {
    this.#expectations += 1
    this.#log(`   ${holds ? 'ok  ' : 'FAIL'} ${what}${holds || found === '' ? '' : `: ${found}`}`)
    if (!holds) this.#failures.push(found === '' ? what : `${what}: ${found}`)
  }

  /** Expects two lists to hold the same values in any order. */
  expectSame(what: string, expected: Iterable<string>, found: Iterable<string>): void {
    const [wanted, there] = [new Set(expected), new Set(found)]
    const missing = [...wanted].filter((value) => !there.has(value)).map((value) => `${value} is missing`)
    const extra = [...there].filter((value) => !wanted.has(value)).map((value) => `${value} is not expected`)
    this.expect(what, missing.length + extra.length === 0, [...missing, ...extra].join(', '))
  }

  summary(): string {
    const total = this.#steps.reduce((sum, { seconds }) => sum + seconds, 0)
    const steps = this.#steps.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`)
    const failed = this.#failures.map((failure) => `  FAIL ${failure}`)
    const verdict = `${this.#expectations} expectations, ${this.#failures.length} failed, ${total.toFixed(0)} s`
    return `\n${[...steps, '', ...failed, verdict].join('\n')}\n`
  }
}
