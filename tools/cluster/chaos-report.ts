import type { AgentStreamLoad } from './load/agent-streams.ts'
import type { Ledger } from './load/ledger.ts'
import type { Outcome } from './round.ts'

export interface Round extends Outcome {
  /** The number of messages that were delivered again in this round. */
  readonly again: number
}

export interface ChaosReport {
  readonly ledgers: readonly Ledger[]
  readonly rounds: readonly Round[]
  readonly streamEnds: Readonly<AgentStreamLoad['ends']>
  readonly seconds: number
  /** The recoveries that took too long, and the checks that could not run. */
  readonly problems: readonly string[]
}
