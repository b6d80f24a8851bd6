import { citedByName } from './citation.ts'
import type { Need } from './needs.ts'
import type { Requirement } from './requirement.ts'

/** A test of a finished run: its own name, the names of the groups around it, and how it ended. */
export interface FinishedTest {
  readonly names: readonly string[]
  readonly state: 'passed' | 'failed' | 'skipped' | 'pending'
}

/** Returns a line for each requirement that no passed test of the run cites. `missing` are the needs this machine does not meet. */
export function unproven(
  requirements: readonly Requirement[],
  tests: readonly FinishedTest[],
  missing: ReadonlySet<Need>,
): readonly string[] {
  const seen = new Map<string, Set<FinishedTest['state']>>()
  for (const { names, state } of tests) {
    for (const id of names.flatMap(citedByName)) {
      const states = seen.get(id) ?? new Set()
      seen.set(id, states.add(state))
    }
  }
  return requirements.flatMap(({ id, behavior, needs }) => {
    const states = seen.get(id) ?? new Set()
    if (states.has('passed')) return []
    const onlySkipped = states.has('skipped') && !states.has('failed') && !states.has('pending')
    if (onlySkipped && needs !== undefined && missing.has(needs)) return []
    const ends = states.size === 0 ? 'no test that ran cites it' : `the tests that cite it: ${[...states].join(', ')}`
    return [`${id}: no passed test (${ends}): ${behavior}`]
  })
}
