import type { NatsEngineProblem } from './options.ts'

/** Problems remembered; past them nothing more is reported, so that a flood of bad data is no flood of log lines. */
const MAX_REMEMBERED = 100

/** Reports each problem of a kind once, until it is over. */
export class ReportOnce {
  readonly #onProblem: (problem: NatsEngineProblem) => void
  readonly #reported = new Set<string>()

  constructor(onProblem: (problem: NatsEngineProblem) => void) {
    this.#onProblem = onProblem
  }

  report(key: string, message: string, error?: unknown): void {
    if (this.#reported.has(key) || this.#reported.size >= MAX_REMEMBERED) return
    this.#reported.add(key)
    this.#onProblem({ kind: 'warning', message, ...(error !== undefined && { error }) })
  }

  /** The problem is over: it is reported again when it comes back. */
  over(key: string): void {
    if (this.#reported.size > 0) this.#reported.delete(key)
  }
}
