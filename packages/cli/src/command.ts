import type { Policy } from '@signalbox/broker-core'

import type { CommandLine, Syntax } from './command-line.ts'
import type { ExitCode } from './errors.ts'
import type { CommandIo } from './terminal.ts'

/** A command of the command line. Its code is loaded when it runs. */
export interface Command extends Syntax {
  readonly summary: string
  /** The words after `signalbox`. */
  readonly example: string
  readonly load: () => Promise<Run>
}

/** Runs a command. Returns its exit code; nothing for 0. */
export type Run = (call: CommandCall) => Promise<ExitCode | void>

/** The call of a command. */
export interface CommandCall {
  readonly line: CommandLine
  readonly io: CommandIo
  readonly host: CommandHost
}

/** The parts of the server that commands need. The program that contains both provides them, and loads each on its first use. */
export interface CommandHost {
  /** The version of the program. */
  readonly version: string
  /** The folder of the deployment files; `undefined` if this installation has none. */
  readonly deployFolder: () => string | undefined
  readonly yamlParser: () => Promise<(text: string) => ParsedYaml>
  /** Returns a parser of policies in YAML. The parser throws PolicyError. */
  readonly policyParser: () => Promise<(text: string) => Policy>
  /**
   * Starts a server with settings as environment variables have them. Aborting the signal ends a start.
   * @throws CONFIG_INVALID, START_FAILED
   */
  readonly startServer: (env: CommandIo['env'], signal: AbortSignal) => Promise<RunningServer>
  /** Copies the store that flags and environment select to a file. @throws CONFIG_INVALID, START_FAILED */
  readonly backUpStore: (store: StoreChoice, file: string) => Promise<StoreCopy>
  /** Copies a backup into the empty folder of the store. @throws CONFIG_INVALID, START_FAILED */
  readonly restoreStore: (store: StoreChoice, file: string) => Promise<StoreCopy>
  /** Copies the readable messages of a damaged store to a new folder. @throws START_FAILED */
  readonly recoverStore: (from: string, to: string) => Promise<RecoveredStore>
}

/** A server that accepts calls. Disposing of it shuts it down. */
export interface RunningServer extends AsyncDisposable {
  readonly http: ListenerAddress
  readonly api: ListenerAddress
}

interface ListenerAddress {
  readonly port: number
  readonly url: string
}

/** The value of a YAML text, or the first line of its error. */
export type ParsedYaml = { readonly value: unknown } | { readonly problem: string }

/** The flags and the environment that select a store, as they do for the server. */
export interface StoreChoice {
  readonly flags: readonly string[]
  readonly env: CommandIo['env']
}

/** A copy of a store. */
export interface StoreCopy {
  readonly file: string
  readonly bytes: number
}

/** The result of a recovery. */
export interface RecoveredStore extends StoreCopy {
  readonly channels: number
  readonly messages: number
  readonly leftOut: readonly string[]
}
