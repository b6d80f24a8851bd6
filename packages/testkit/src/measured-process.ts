import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import type { CallMessage } from './calls.ts'
import { isAnswer } from './calls.ts'
import type { LoopDelay } from './instrument.ts'

interface ProcessOptions {
  readonly script: string
  readonly args?: readonly string[]
  /** True for a script that needs no source of the workspace's packages. @default false */
  readonly built?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The core to which it is pinned; `undefined` leaves the choice to the scheduler. */
  readonly core?: number | undefined
  readonly nodeArgs?: readonly string[] | undefined
  /** False to run it without the preloaded instrument; it then answers no calls. @default true */
  readonly instrumented?: boolean
  /** A folder for CPU profiles of all its threads, written when it is stopped. */
  readonly profiles?: string | undefined
  /** A command that runs it, such as strace; the command must replace itself by the process or run next to it. */
  readonly wrapper?: readonly string[] | undefined
}

const INSTRUMENT = fileURLToPath(new URL('instrument.ts', import.meta.url))
const running = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A Node process that the harness started, and that reports its use of resources. */
export class MeasuredProcess implements AsyncDisposable {
  readonly child: ChildProcess
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>()
  readonly #exited: Promise<void>
  readonly #profiled: boolean
  #nextId = 1
  #output = ''
  #onOutput: (() => void) | undefined

  constructor(options: ProcessOptions) {
    const node = [
      process.execPath,
      ...(options.built === true ? [] : ['--conditions=@signalbox/source']),
      ...(options.instrumented === false ? [] : [`--import=${INSTRUMENT}`]),
      ...(options.nodeArgs ?? []),
      options.script,
      ...(options.args ?? []),
    ]
    const pin = options.core === undefined ? [] : ['taskset', '-c', String(options.core)]
    const [command = process.execPath, ...args] = [...pin, ...(options.wrapper ?? []), ...node]
    this.child = spawn(command, args, {
      cwd: options.cwd,
      env: {
        ...process.env,
        ...options.env,
        ...(options.profiles === undefined ? {} : { SIGNALBOX_PROFILES: options.profiles }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
    })
    this.#profiled = options.profiles !== undefined && options.instrumented !== false
    running.add(this.child)
    const take = (chunk: Buffer) => {
      // Enough to find the ready line and to show the reason if it is missing; the output of a long run must not be
      // kept.
      if (this.#output.length < 65_536) this.#output += chunk.toString()
      this.#onOutput?.()
    }
    this.child.stdout?.on('data', take)
    this.child.stderr?.on('data', take)
    this.child.on('message', (message) => {
      if (!isAnswer(message)) return
      const waiting = this.#waiting.get(message.signalboxAnswer)
      this.#waiting.delete(message.signalboxAnswer)
      if (message.error === undefined) waiting?.resolve(message.result)
      else waiting?.reject(new Error(message.error))
    })
    this.#exited = new Promise((resolve) => {
      const ended = () => {
        running.delete(this.child)
        for (const { reject } of this.#waiting.values()) reject(new Error(`process ended\n${this.#output}`))
        this.#waiting.clear()
        this.#onOutput?.()
        resolve()
      }
      this.child.once('exit', ended)
      this.child.once('error', ended)
    })
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`the process did not start\n${this.#output}`)
    return this.child.pid
  }

  /** Its output so far, truncated. */
  get output(): string {
    return this.#output
  }

  get exited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Resolves with the result of `find` for the first line of output for which it returns one. */
  async line<T>(find: (line: string) => T | undefined): Promise<T> {
    for (;;) {
      for (const line of this.#output.split('\n')) {
        const found = find(line)
        if (found !== undefined) return found
      }
      if (this.exited) throw new Error(`the process ended before it was ready\n${this.#output}`)
      await new Promise<void>((resolve) => {
        this.#onOutput = resolve
      })
    }
  }

  call<T>(name: string, args?: unknown): Promise<T> {
    const id = this.#nextId++
    return new Promise<T>((resolve, reject) => {
      if (this.exited) {
        reject(new Error(`process ended\n${this.#output}`))
        return
      }
      this.#waiting.set(id, { resolve: (result) => resolve(result as T), reject })
      // Without a callback, a channel that has just closed would end the harness.
      this.child.send({ signalboxCall: name, id, args } satisfies CallMessage, (error) => {
        if (error !== null && this.#waiting.delete(id)) reject(error)
      })
    })
  }

  cpuMicros(): Promise<number> {
    return this.call('cpuMicros')
  }

  rssBytes(): Promise<number> {
    return this.call('rssBytes')
  }

  async loopDelayDuring<T>(work: () => Promise<T>): Promise<{ delay: LoopDelay; result: T }> {
    await this.call('startLoopDelay')
    const result = await work()
    return { delay: await this.call<LoopDelay>('stopLoopDelay'), result }
  }

  /** Resolves when it has ended, for any reason. */
  get ended(): Promise<void> {
    return this.#exited
  }

  /** Kills it with `kill -9`; resolves when it has ended. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#exited
  }

  /** Stops it with SIGTERM; resolves with its exit code (`null` if a signal ended it). */
  async stop(): Promise<number | null> {
    if (this.#profiled && !this.exited) await this.call('writeProfiles')
    if (!this.exited) this.child.kill('SIGTERM')
    const deadline = setTimeout(() => this.child.kill('SIGKILL'), 30_000)
    await this.#exited
    clearTimeout(deadline)
    return this.child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

/** Makes an interrupted run end through `exit`, where processes are killed and temporary folders removed. */
export function exitOnSignals(): void {
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
}
