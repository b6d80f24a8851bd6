import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

import type { ConnectOptions, Signalbox } from '../src/index.ts'
import { connect } from '../src/index.ts'

const MAIN = fileURLToPath(new URL('../../../apps/server/scripts/start.js', import.meta.url))

const running = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** The number of times that a server is started which ends before it is ready. */
const START_TRIES = 10

/** A real server in a process of its own, which can be killed and started again at the same address. */
export class TestServer implements AsyncDisposable {
  readonly #folder: TemporaryFolder
  readonly #env: Readonly<Record<string, string>>
  #port = 0
  #child: ChildProcess | undefined

  private constructor(folder: TemporaryFolder, env: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.#env = { API_PORT: '0', LOG_LEVEL: 'warn', STORE_PATH: folder.join('store'), ...env }
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
    const server = new TestServer(await TemporaryFolder.create('client'), env)
    await server.start()
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Resolves when the server is ready, at its former address. Another process may have its port for a moment. */
  async start(): Promise<void> {
    for (let tries = 0; tries < START_TRIES; tries++) {
      const port = await this.#spawn()
      if (port !== undefined) {
        this.#port = port
        return
      }
      await pause(500)
    }
    throw new Error('the server ended before it was ready')
  }

  /** Returns the port of the server; `undefined` if it has ended. */
  async #spawn(): Promise<number | undefined> {
    const child = spawn(process.execPath, ['--conditions=@signalbox/source', MAIN], {
      env: { ...process.env, ...this.#env, HTTP_PORT: String(this.#port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    running.add(child)
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.includes('signalbox ready')) {
        child.stdout.resume()
        return Number(/"http":"http:\/\/[^"]+:(\d+)"/.exec(line)?.[1])
      }
    }
    running.delete(child)
    return undefined
  }

  /** Ends the process as a crash or as an operator does. */
  async stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
    running.delete(child)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
    await this.#folder[Symbol.asyncDispose]()
  }
}

export interface FileServer {
  readonly server: TestServer
  /** Connects for one test. */
  readonly client: (options?: ConnectOptions) => Signalbox
}

/** Starts a server for all tests of the file that calls this. @param always The options of all clients. */
export function serverForFile(always: ConnectOptions = {}): FileServer {
  let server: TestServer
  beforeAll(async () => {
    server = await TestServer.start()
  })
  afterAll(() => server[Symbol.asyncDispose]())
  return {
    get server() {
      return server
    },
    client(options) {
      const sb = connect(server.url, { ...always, ...options })
      onTestFinished(() => sb.close())
      return sb
    },
  }
}
