import { Readable } from 'node:stream'

import { testFolder } from '@signalbox/testkit/test-folder'

import type { CommandIo, Output } from '../../src/commands/command-io.ts'
import type { ExitCode } from '../../src/commands/exit-codes.ts'
import { EXIT } from '../../src/commands/exit-codes.ts'
import { runCommand } from '../../src/commands/run-command.ts'

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array
  /** A person reads stdout. */
  readonly terminal?: boolean
}

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs in this process. */
export class RunningCommand implements CommandIo {
  readonly env: CommandIo['env']
  readonly stdin: CommandIo['stdin']
  readonly stdout: Output
  readonly stderr: Output
  readonly result: Promise<CommandResult>
  interrupted: ExitCode | undefined
  readonly #stop = new AbortController()
  readonly #texts = { stdout: '', stderr: '' }
  #changed: (() => void)[] = []

  constructor(args: readonly string[], { env = {}, stdin = '', terminal = false }: CommandOptions = {}) {
    // Without the contexts of the person who runs the tests.
    this.env = { XDG_CONFIG_HOME: env['XDG_CONFIG_HOME'] ?? testFolder(), ...env }
    this.stdin = Readable.from([Buffer.from(stdin)])
    this.stdout = this.#output('stdout', terminal)
    this.stderr = this.#output('stderr', terminal)
    this.result = runCommand(args, this).then((code) => ({ code, ...this.#texts }))
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Does as Ctrl-C does. */
  interrupt(): void {
    this.interrupted = EXIT.INTERRUPTED
    this.#stop.abort()
  }

  /** Waits until stderr or stdout has the text. */
  async until(text: string): Promise<void> {
    while (!`${this.#texts.stdout}${this.#texts.stderr}`.includes(text)) {
      await new Promise<void>((resolve) => this.#changed.push(resolve))
    }
  }

  #output(name: 'stdout' | 'stderr', terminal: boolean): Output {
    return {
      terminal,
      write: async (text) => {
        this.#texts[name] += text
        for (const changed of this.#changed.splice(0)) changed()
      },
    }
  }
}

/** Runs a command in this process to its end. */
export function command(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new RunningCommand(args, options).result
}
