import type { MemoryUse } from '../harness/instrument.ts'
import type { HonestFigures } from './honest-caller.ts'
import type { ServerKind } from './server-kind.ts'
import type { Watched } from './watch.ts'

export interface AttackReport {
  readonly attack: string
  readonly kind: ServerKind
  /** What the attacker got, by status and code. */
  readonly got: string
  /** Refusals by limit. */
  readonly refusals: string
  readonly seconds: number
  readonly honest: HonestFigures
  readonly watched: Watched
  readonly before: MemoryUse
  readonly after: MemoryUse
  readonly lives: boolean
  /** What did not hold. */
  readonly problems: readonly string[]
}
