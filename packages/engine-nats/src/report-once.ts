import type { NatsEngineProblem } from './options.ts'

/**
 * The maximum number of remembered problems. Beyond it no more are reported, so that a flood of bad data
 * does not flood the log.
 */
const MAX_REMEMBERED = 100

/** Reports each problem once, until it is over. */
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

  /** Marks a problem as over, so that it is reported again if it returns. */
  over(key: string): void {
    if (this.#reported.size > 0) this.#reported.delete(key)
  }
}
