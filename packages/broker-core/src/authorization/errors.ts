/** The error for a policy that is not valid. `problems` has one line per problem; `message` has all lines. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
