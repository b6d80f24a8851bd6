import type { AgentStreamLoad } from './load/agent-streams.ts'
import type { Ledger } from './load/ledger.ts'
import type { Outcome } from './round.ts'

export interface Round extends Outcome {
  /** Messages that came to receivers once more in this round. */
  readonly again: number
}

export interface ChaosReport {
  readonly ledgers: readonly Ledger[]
  readonly rounds: readonly Round[]
  readonly streamEnds: Readonly<AgentStreamLoad['ends']>
  readonly seconds: number
  /** What did not come back in time, or could not be checked. */
  readonly problems: readonly string[]
}
