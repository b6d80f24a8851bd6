import { isBrokerError } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'

import type { NatsEngineProblem } from './options.ts'

/**
 * Runs work that no caller waits for. Reports a failure as a problem, so no rejection stays unhandled.
 * Ignores ENGINE_UNAVAILABLE, because the connection reports it.
 */
export function runInBackground(
  onProblem: (problem: NatsEngineProblem) => void,
  what: string,
  work: Promise<unknown>,
): void {
  work.catch((error: unknown) => reportFailure(onProblem, what, error))
}

export function reportFailure(onProblem: (problem: NatsEngineProblem) => void, what: string, error: unknown): void {
  if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) onProblem(failure(what, error))
}

/** Returns the problem of work that failed. */
export function failure(what: string, error: unknown): NatsEngineProblem {
  return { kind: 'failed', message: `${what} failed: ${messageOf(error)}`, error }
}

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
    this.#onProblem({ kind: 'warning', message, error })
  }

  /** Marks a problem as over, so that it is reported again if it returns. */
  over(key: string): void {
    if (this.#reported.size > 0) this.#reported.delete(key)
  }
}
