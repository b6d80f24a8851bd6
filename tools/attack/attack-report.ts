import type { MemoryUse } from '../harness/instrument.ts'
import type { HonestFigures } from './honest-caller.ts'
import type { EngineName, ServerKind } from './server-kind.ts'
import type { Watched } from './watch.ts'

export interface AttackReport {
  readonly attack: string
  readonly engine: EngineName
  readonly kind: ServerKind
  /** The attacker's answers, by status and code. */
  readonly got: string
  /** Refusals by limit. */
  readonly refusals: string
  readonly seconds: number
  /** The other caller before the attack, on the same server. */
  readonly alone: HonestFigures
  /** The other caller during the attack. */
  readonly honest: HonestFigures
  readonly watched: Watched
  /** The share of the machine that processes outside the run took, in percent. */
  readonly othersPercent: number
  readonly before: MemoryUse
  readonly after: MemoryUse
  readonly lives: boolean
  /** The failed expectations. */
  readonly problems: readonly string[]
  /** The times that were too long. */
  readonly late: readonly string[]
  /** True if the attack ran a second time, because times of the first run were too long. */
  readonly repeated: boolean
}
