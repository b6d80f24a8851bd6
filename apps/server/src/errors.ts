/** Every way the server can refuse to start. Codes are stable; the command line turns them into exit codes. */
export const SERVER_ERRORS = {
  /** A setting is unknown or its value is not allowed. `problems` has one line for each. Exit code 2. */
  CONFIG_INVALID: 'a setting is unknown, or its value is not allowed',
  /** Something the server or a command needs is not to be had: a port, the store, a file. Exit code 1. */
  START_FAILED: 'the server could not start',
} as const

export type ServerErrorCode = keyof typeof SERVER_ERRORS

export class ServerError extends Error {
  override readonly name = 'ServerError'
  readonly code: ServerErrorCode
  /** One line for each thing that is wrong, fit for an operator. `message` has them all. */
  readonly problems: readonly string[]

  constructor(code: ServerErrorCode, problems: readonly string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.code = code
    this.problems = problems
  }
}
