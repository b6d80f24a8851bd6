import { constants } from 'node:os'
import process from 'node:process'

import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'

/** A stream of output for people or programs. */
export interface Output {
  /** Resolves when the reader can read the text. @throws ClosedOutput if the reader has gone */
  write(text: string): Promise<void>
  /** `true` if a person sees it. */
  readonly terminal: boolean
}

/** The reader of the output has gone, such as `head` after its last line. */
export class ClosedOutput extends Error {
  override readonly name = 'ClosedOutput'
}

/** The surroundings of a command: streams, environment and signals. */
export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  /** Aborts with Ctrl-C, SIGTERM, or when the reader of stdout has gone. Before the first use, signals end the process. */
  readonly signal: AbortSignal
  /** The exit code of a command that ended because of the signal; `undefined` while it has not aborted. */
  readonly interrupted: ExitCode | undefined
}

/** Writes a line for people to stderr. Never rejects. */
export async function warn({ stderr }: Pick<CommandIo, 'stderr'>, text: string): Promise<void> {
  try {
    await stderr.write(`${text}\n`)
  } catch {
    // stderr has no reader.
  }
}

/** Returns the streams and signals of this process. */
export function processIo(env: CommandIo['env']): CommandIo {
  const stop = new AbortController()
  let code: ExitCode | undefined
  let listening = false
  const end = (exitCode: ExitCode): void => {
    code ??= exitCode
    stop.abort()
  }
  const output = (stream: NodeJS.WriteStream): Output => {
    // An error without a listener would end the process with a stack.
    stream.on('error', () => end(EXIT.OK))
    return {
      terminal: stream.isTTY,
      write: (text) =>
        new Promise((resolve, reject) => {
          stream.write(text, (error) => {
            if (error) reject(new ClosedOutput('the output was closed', { cause: error }))
            else resolve()
          })
        }),
    }
  }
  return {
    env,
    get stdin() {
      return process.stdin
    },
    stdout: output(process.stdout),
    stderr: output(process.stderr),
    get signal() {
      if (!listening) {
        listening = true
        for (const signal of ['SIGINT', 'SIGTERM'] as const) {
          let repeated = false
          // One listener for both: without any, a second signal that comes at once would kill the process.
          process.on(signal, () => {
            // A second signal ends the process at once.
            if (repeated) process.exit(128 + constants.signals[signal])
            repeated = true
            end(signal === 'SIGINT' ? EXIT.INTERRUPTED : EXIT.TERMINATED)
          })
        }
      }
      return stop.signal
    },
    get interrupted() {
      return code
    },
  }
}
