import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** Debian's package installs it outside the search path of many users. */
const PLACES = ['nats-server', '/usr/sbin/nats-server', '/usr/local/bin/nats-server']

/**
 * The nats-server of `NATS_SERVER_BINARY`, or else the one in the search path; undefined when there is none.
 */
export const NATS_SERVER: string | undefined = [process.env['NATS_SERVER_BINARY'] ?? '', ...PLACES].find(runs)

function runs(command: string): boolean {
  if (command === '') return false
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Returns the version of a nats-server, such as `2.10.27`; empty without a binary. */
export function natsServerVersion(binary: string | undefined = NATS_SERVER): string {
  if (binary === undefined) return ''
  return /\d+(?:\.\d+)*/.exec(execFileSync(binary, ['--version'], { encoding: 'utf8' }))?.[0] ?? ''
}

export interface NatsServerOptions {
  /** The executable. @default {@link NATS_SERVER} */
  readonly binary?: string | undefined
  /** A command that runs the executable, with its first arguments, such as `['nice']`. @default none */
  readonly wrapper?: readonly string[]
  /** Additional lines of configuration. @default none */
  readonly config?: string
  /** Enables JetStream. @default true */
  readonly jetstream?: boolean
  /** The scheme of {@link NatsServer.url}. @default 'nats' */
  readonly scheme?: 'nats' | 'tls'
  /** Enables {@link NatsServer.monitor}. @default false */
  readonly monitored?: boolean
}

/** The number of times that a server is started which ends at once. */
const START_TRIES = 20

/** The ports of a running server. */
interface Ports {
  readonly client: number
  readonly monitoring: number | undefined
}

/** The running servers with their folders. They end with the process, even if it is interrupted. */
const running = new Map<ChildProcess, string>()
process.once('exit', () => {
  for (const [server, folder] of running) {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})

/** A real nats-server with JetStream and its own folder. */
export class NatsServer implements AsyncDisposable {
  readonly #folder: string
  readonly #options: NatsServerOptions
  #process: ChildProcess | undefined
  #port = -1
  #monitoringPort: number | undefined

  private constructor(folder: string, options: NatsServerOptions) {
    this.#folder = folder
    this.#options = options
  }

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = new NatsServer(await mkdtemp(join(tmpdir(), 'signalbox-nats-')), options)
    await server.start()
    return server
  }

  /** The process id; undefined while the server does not run. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  get url(): string {
    return `${this.#options.scheme ?? 'nats'}://127.0.0.1:${this.#port}`
  }

  get urls(): readonly string[] {
    return [this.url]
  }

  get folder(): string {
    return this.#folder
  }

  /**
   * Starts the server on a free port, or on its former port. `replaced` replaces the additional
   * configuration.
   */
  async start(replaced = this.#options.config ?? ''): Promise<void> {
    const binary = this.#options.binary ?? NATS_SERVER
    if (binary === undefined) throw new Error('nats-server is not installed')
    const config = join(this.#folder, 'nats.conf')
    await writeFile(
      config,
      [
        `listen: "127.0.0.1:${this.#port}"`,
        `ports_file_dir: ${JSON.stringify(this.#folder)}`,
        'max_payload: 16MB',
        ...(this.#options.monitored === true ? ['http: "127.0.0.1:-1"'] : []),
        ...(this.#options.jetstream === false
          ? []
          : [`jetstream { store_dir: ${JSON.stringify(join(this.#folder, 'store'))} }`]),
        replaced,
      ].join('\n'),
    )
    const { client, monitoring } = await this.#spawn(binary, config)
    this.#port = client
    this.#monitoringPort = monitoring
  }

  /** Starts the process. Another one may have its former port, or a port that was free, for a moment. */
  async #spawn(binary: string, config: string): Promise<Ports> {
    for (let tries = 1; ; tries++) {
      const [command, ...first] = this.#options.wrapper ?? []
      const args = command === undefined ? ['-c', config] : [...first, binary, '-c', config]
      const server = spawn(command ?? binary, args, { stdio: 'ignore' })
      running.set(server, this.#folder)
      server.once('exit', () => running.delete(server))
      this.#process = server
      try {
        return await this.#readPorts()
      } catch (error) {
        if (server.exitCode === null || tries === START_TRIES) throw error
      }
      await pause(500)
    }
  }

  /**
   * Reads a monitoring endpoint, such as `/healthz`. Rejects if the status is not 200, or after
   * `milliseconds`.
   */
  async monitor(path: string, milliseconds: number): Promise<unknown> {
    if (this.#monitoringPort === undefined) throw new Error('the server is not monitored')
    const signal = AbortSignal.timeout(milliseconds)
    const response = await fetch(`http://127.0.0.1:${this.#monitoringPort}${path}`, { signal })
    const said = await response.text()
    if (!response.ok) throw new Error(`${path}: ${said}`)
    return JSON.parse(said) as unknown
  }

  async #readPorts(): Promise<Ports> {
    const { monitored = false } = this.#options
    for (let tries = 0; tries < 1_200; tries++) {
      const files = await readdir(this.#folder)
      const file = files.find((name) => name.endsWith(`_${this.#process?.pid}.ports`))
      const text = file === undefined ? '' : await readFile(join(this.#folder, file), 'utf8')
      const client = /"nats":\s*\["[^"]*:(\d+)"/.exec(text)?.[1]
      const monitoring = /"monitoring":\s*\["[^"]*:(\d+)"/.exec(text)?.[1]
      if (client !== undefined && (monitoring !== undefined || !monitored)) {
        return { client: Number(client), monitoring: monitoring === undefined ? undefined : Number(monitoring) }
      }
      if (this.#process?.exitCode !== null) throw new Error('nats-server ended during its start')
      await pause(25)
    }
    throw new Error('nats-server did not start')
  }

  /** Ends the server at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const process = this.#process
    this.#process = undefined
    if (!process || process.exitCode !== null) return
    const exited = once(process, 'exit')
    process.kill('SIGCONT')
    process.kill(signal)
    await exited
  }

  /** Freezes the server: connections remain open, but it does not answer. */
  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
