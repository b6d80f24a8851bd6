import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

export const APP = join(import.meta.dirname, '..', '..')

/** Of this process's environment: nothing that configures a server. */
export const INHERITED: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE', 'SOURCE_BUNDLE'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }),
)

export interface CliOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Code that the process runs before the command line, as a module. */
  readonly preload?: string
  /** Runs the files of the source, not their bundle: for tests of what is loaded. @default false */
  readonly unbundled?: boolean
  /** A file descriptor in place of the pipe that `stdout` is read from. */
  readonly stdout?: number
  /** The whole standard input. @default none */
  readonly stdin?: string
}

/** The real command line in a process of its own. */
export class Cli {
  readonly child: ChildProcess
  stdout = ''
  stderr = ''
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  #changed: (() => void)[] = []

  constructor({ args = [], env = {}, cwd, preload, unbundled = false, stdout, stdin }: CliOptions) {
    const preloads = preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`]
    this.child = spawn(
      process.execPath,
      ['--conditions=@signalbox/source', ...preloads, join(APP, 'scripts', 'start.js'), ...args],
      {
        env: { ...INHERITED, ...(unbundled && { SOURCE_BUNDLE: undefined }), ...env },
        stdio: [stdin === undefined ? 'ignore' : 'pipe', stdout ?? 'pipe', 'pipe'],
        ...(cwd ? { cwd } : {}),
      },
    )
    this.child.stdin?.end(stdin)
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
      this.#tell()
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
      this.#tell()
    })
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        resolve({ code, signal })
        this.#tell()
      })
    })
    onTestFinished(async () => {
      if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
      await this.exited
    })
  }

  #tell(): void {
    for (const changed of this.#changed.splice(0)) changed()
  }

  /** Waits until the output says so. */
  async until(seen: () => boolean, what: string): Promise<void> {
    while (!seen()) {
      const { exitCode, signalCode } = this.child
      if ((exitCode !== null || signalCode !== null) && this.child.stdout?.readableEnded) {
        throw new Error(`ended before ${what}: ${exitCode ?? signalCode}\n${this.stdout}${this.stderr}`)
      }
      await new Promise<void>((resolve) => this.#changed.push(resolve))
    }
  }

  /** The complete lines of the log, and of announcements, that are JSON. */
  lines(): Record<string, unknown>[] {
    return this.stdout
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  /** Waits for the ready line, and returns the addresses in it. */
  async ready(): Promise<{ http: string; api: string }> {
    const find = () => this.lines().find(({ msg }) => msg === 'signalbox ready')
    await this.until(() => this.stdout.endsWith('\n') && find() !== undefined, 'the ready line')
    const { http, api } = find()!
    return { http: String(http), api: String(api) }
  }
}

/** Runs the command line to its end. */
export async function runCli(options: CliOptions): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const cli = new Cli(options)
  const { code } = await cli.exited
  return { code, stdout: cli.stdout, stderr: cli.stderr }
}

/** Starts a server on free ports and, unless the environment says otherwise, a store of its own. */
export function startCli({ env = {}, ...options }: CliOptions = {}): Cli {
  const store = env['STORE_PATH'] ?? testFolder()
  return new Cli({ ...options, env: { HTTP_PORT: '0', API_PORT: '0', ...env, STORE_PATH: store } })
}
