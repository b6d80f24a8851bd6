import type { CommandOptions, CommandResult } from '@signalbox/cli/testing'
import { RunningCommand as Running } from '@signalbox/cli/testing'

import { commandHost } from '../../src/cli.ts'

export type { CommandOptions, CommandResult } from '@signalbox/cli/testing'

/** A command that runs in this process, with the parts of the server that it needs. */
export class RunningCommand extends Running {
  constructor(args: readonly string[], options: CommandOptions = {}) {
    super(args, { host: commandHost, ...options })
  }
}

/** Runs a command in this process to its end. */
export function command(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new RunningCommand(args, options).result
}
