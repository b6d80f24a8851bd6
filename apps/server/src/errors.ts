/** The errors of the server. The codes are stable; the command line maps them to exit codes. */
export const SERVER_ERRORS = {
  /**
   * A setting is unknown or its value is not allowed. `problems` has one line for each. Exit code
   * 2.
   */
  CONFIG_INVALID: 'a setting is unknown, or its value is not allowed',
  /**
   * A resource that the server or a command needs is not available: a port, the store, a file. Exit
   * code 1.
   */
  START_FAILED: 'the server could not start',
} as const

export type ServerErrorCode = keyof typeof SERVER_ERRORS

export class ServerError extends Error {
  override readonly name = 'ServerError'
  readonly code: ServerErrorCode
  /** One line for each problem, for operators. `message` contains all lines. */
  readonly problems: readonly string[]

  constructor(code: ServerErrorCode, problems: readonly string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.code = code
    this.problems = problems
  }
}
