import type { CommandCall } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { shown, styles } from './style.ts'
import type { Style } from './style.ts'

/** The result of one check of a command that looks for problems. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  readonly detail: string
  /** The exit code of the command if this check is the first that failed. @default 1 */
  readonly exit?: ExitCode
}

const COLORS = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Readonly<Record<string, Style>>

/** Prints checks as they are made. */
export class CheckList {
  readonly #call: CommandCall
  #exit: ExitCode | undefined

  constructor(call: CommandCall) {
    this.#call = call
  }

  /** The code of the first check that failed; 0 if none did. */
  get exit(): ExitCode {
    return this.#exit ?? EXIT.OK
  }

  async add({ name, state, detail, exit = EXIT.FAILED }: Check): Promise<void> {
    if (state === 'failed') this.#exit ??= exit
    const { line, io } = this.#call
    const style = styles(io, io.stdout)
    await io.stdout.write(
      line.has('json')
        ? `${JSON.stringify({ check: name, state, detail })}\n`
        : `${style(COLORS[state], state.padEnd(7))}  ${name.padEnd(14)}  ${shown(detail, io.stdout)}\n`,
    )
  }
}
