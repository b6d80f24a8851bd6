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
  if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) return
  onProblem({ kind: 'failed', message: `${what} failed: ${messageOf(error)}`, error })
}
