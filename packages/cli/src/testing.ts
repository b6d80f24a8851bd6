import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'

import type { CommandHost } from './command.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { runCommand } from './run-command.ts'
import type { CommandIo, Output } from './terminal.ts'

/** A host without a server, for commands that use no part of one. */
const NO_HOST: CommandHost = {
  version: '1.2.3',
  deployFolder: () => undefined,
  yamlParser: absent,
  policyParser: absent,
  startServer: absent,
  backUpStore: absent,
  restoreStore: absent,
  recoverStore: absent,
}

function absent(): Promise<never> {
  return Promise.reject(new Error('the command needs a host'))
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array
  /** @default a host without a server */
  readonly host?: CommandHost
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

  constructor(
    args: readonly string[],
    { env = {}, stdin = '', terminal = false, host = NO_HOST }: CommandOptions = {},
  ) {
    // Without the contexts of the person who runs the tests: the folder does not exist.
    this.env = { XDG_CONFIG_HOME: join(tmpdir(), randomUUID()), ...env }
    this.stdin = Readable.from([Buffer.from(stdin)])
    this.stdout = this.#output('stdout', terminal)
    this.stderr = this.#output('stderr', terminal)
    this.result = runCommand(args, this, host).then((code) => ({ code, ...this.#texts }))
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
