import type { Need } from './needs.ts'

/** One normative statement: what must hold, and where it is written. Tests cite its id at the start of their names. */
export interface Requirement {
  /** Short and stable: `TOOL-3` for the specification, `M7` for a decision. */
  readonly id: string
  /** The section of the specification, or the decision record, that says it. */
  readonly source: string
  readonly behavior: string
  /** Its tests may be skipped on a machine without this program. Without a need, a skipped test shows nothing. */
  readonly needs?: Need
}

/** Requirements of one section, numbered in the order given. */
export function section(
  prefix: string,
  source: string,
  behaviors: readonly string[],
  needs?: Need,
): readonly Requirement[] {
  return behaviors.map((behavior, i) => ({
    id: `${prefix}-${i + 1}`,
    source,
    behavior,
    ...(needs === undefined ? {} : { needs }),
  }))
}
