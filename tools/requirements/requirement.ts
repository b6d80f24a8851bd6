/** A program outside npm that the tests of some requirements need; without it they are skipped. */
export type Need = 'nats-server'

/** A normative statement and its source. Tests cite its id at the start of their names. */
export interface Requirement {
  /** Short and stable: `TOOL-3` for the specification, `M7` for a decision. */
  readonly id: string
  /** The section of the specification, or the decision record, with the statement. */
  readonly source: string
  readonly behavior: string
  /** The program without which its tests may be skipped. Without a need, a skipped test proves nothing. */
  readonly needs?: Need | undefined
}

/** Returns the requirements of one section, numbered in the given order. */
export function section(
  prefix: string,
  source: string,
  behaviors: readonly string[],
  needs?: Need,
): readonly Requirement[] {
  return behaviors.map((behavior, i) => ({ id: `${prefix}-${i + 1}`, source, behavior, needs }))
}
