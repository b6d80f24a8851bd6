/** The exit codes of the commands. Scripts rely on them: docs/guides/command-line.md lists them. */
export const EXIT = {
  OK: 0,
  /** The command failed, or the answer is negative. */
  FAILED: 1,
  /** The command line, or an argument in it, is invalid. */
  USAGE: 2,
  /** There is no message, responder or agent, or no answer came in time. */
  NOTHING: 3,
  /** The server refused the caller: HTTP 401 or 403. */
  REFUSED: 4,
  /** The server cannot be reached. */
  UNREACHABLE: 5,
  /** Ctrl-C ended the command before it was done: 128 and the number of the signal. */
  INTERRUPTED: 130,
  /** SIGTERM ended the command before it was done. */
  TERMINATED: 143,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The problems of a command line, or of a file that it names. `CONFIG_INVALID` ends with exit code 2, `START_FAILED` with 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly code: 'CONFIG_INVALID' | 'START_FAILED'
  /** One line for each problem. */
  readonly problems: readonly string[]

  constructor(code: CommandError['code'], problems: readonly string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.code = code
    this.problems = problems
  }
}

/** Recognizes this package's errors and those of the host, which have the same members. */
export function isCommandError(error: unknown): error is Pick<CommandError, 'code' | 'problems'> {
  return (
    error instanceof Error &&
    'problems' in error &&
    'code' in error &&
    (error.code === 'CONFIG_INVALID' || error.code === 'START_FAILED')
  )
}
