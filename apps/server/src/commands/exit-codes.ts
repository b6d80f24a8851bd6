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
