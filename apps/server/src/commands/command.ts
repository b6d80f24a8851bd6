import type { CommandIo } from './command-io.ts'
import type { CommandLine } from './command-line.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Syntax } from './syntax.ts'

/** The call of a command. */
export interface CommandCall {
  readonly line: CommandLine
  readonly io: CommandIo
}

/** Runs a command. Returns its exit code; nothing for 0. */
export type Run = (call: CommandCall) => Promise<ExitCode | void>

/** A command of the command line. Its code is loaded when it runs. */
export interface Command extends Syntax {
  readonly summary: string
  /** The words after `signalbox`. */
  readonly example: string
  readonly load: () => Promise<Run>
}
