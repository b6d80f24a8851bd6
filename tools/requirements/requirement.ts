/** One normative statement: what must hold, and where it is written. Tests cite its id at the start of their names. */
export interface Requirement {
  /** Short and stable: `TOOL-3` for the specification, `M7` for a decision. */
  readonly id: string
  /** The section of the specification, or the decision record, that says it. */
  readonly source: string
  readonly behavior: string
}

/** Requirements of one section, numbered in the order given. */
export function section(prefix: string, source: string, behaviors: readonly string[]): readonly Requirement[] {
  return behaviors.map((behavior, i) => ({ id: `${prefix}-${i + 1}`, source, behavior }))
}
