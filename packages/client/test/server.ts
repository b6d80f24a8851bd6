import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { freePort } from '@signalbox/testkit/free-port'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

const MAIN = fileURLToPath(new URL('../../../apps/server/scripts/start.js', import.meta.url))

const running = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A real server in a process of its own, which can be killed and started again at the same address. */
export class TestServer implements AsyncDisposable {
  readonly url: string
  readonly #folder: TemporaryFolder
  readonly #env: Readonly<Record<string, string>>
  #child: ChildProcess | undefined

  private constructor(port: number, folder: TemporaryFolder, env: Readonly<Record<string, string>>) {
    this.url = `http://127.0.0.1:${port}`
    this.#folder = folder
    this.#env = { HTTP_PORT: String(port), API_PORT: '0', LOG_LEVEL: 'warn', STORE_PATH: folder.join('store'), ...env }
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
    const server = new TestServer(await freePort(), await TemporaryFolder.create('client'), env)
    await server.start()
    return server
  }

  /** Resolves when the server is ready. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--conditions=@signalbox/source', MAIN], {
      env: { ...process.env, ...this.#env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    running.add(child)
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.includes('signalbox ready')) {
        child.stdout.resume()
        return
      }
    }
    throw new Error('the server ended before it was ready')
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
