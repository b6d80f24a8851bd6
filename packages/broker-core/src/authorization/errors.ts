/** A policy that is not valid. `problems` has a line for each thing that is wrong; `message` has them all. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
