import { isBrokerError } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'

import type { NatsEngineProblem } from './options.ts'

/**
 * Owns work that nobody waits for: a failure is reported, and never an unhandled rejection. That the servers cannot be
 * reached is reported by the connection.
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
  onProblem({ kind: 'failed', message: `${what}: ${messageOf(error)}`, error })
}
