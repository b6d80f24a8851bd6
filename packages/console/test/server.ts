import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { freePort } from '@signalbox/testkit/free-port'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

const MAIN = fileURLToPath(new URL('../../../apps/server/src/main.ts', import.meta.url))

/** A server in a process of its own, as `npm start` starts it. */
export class Server implements AsyncDisposable {
  readonly #folder: TemporaryFolder
  readonly #env: Readonly<Record<string, string>>
  readonly #ports: readonly [number, number]
  #child: ChildProcess | undefined
  #output = ''

  private constructor(
    folder: TemporaryFolder,
    ports: readonly [number, number],
    env: Readonly<Record<string, string>>,
  ) {
    this.#folder = folder
    this.#ports = ports
    this.#env = env
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<Server> {
    const folder = await TemporaryFolder.create('console')
    const server = new Server(folder, [await freePort(), await freePort()], env)
    await server.resume()
    return server
  }

  /** The management listener. */
  get api(): string {
    return `http://127.0.0.1:${this.#ports[1]}`
  }

  /** The shared listener. */
  get http(): string {
    return `http://127.0.0.1:${this.#ports[0]}`
  }

  get console(): string {
    return `${this.api}/console/`
  }

  /** Starts the server again, with the same ports and store. */
  async resume(): Promise<void> {
    const [http, api] = this.#ports
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env
    const child = spawn(process.execPath, ['--conditions=@signalbox/source', MAIN], {
      env: {
        PATH,
        ...(NODE_COMPILE_CACHE === '' ? {} : { NODE_COMPILE_CACHE }),
        HTTP_PORT: String(http),
        API_PORT: String(api),
        STORE_PATH: this.#folder.join('data'),
        LOG_LEVEL: 'warn',
        ...this.#env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
    this.#child = child
    while (!(await this.#isReady())) {
      if (child.exitCode !== null) throw new Error(`the server ended: ${this.#output}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async #isReady(): Promise<boolean> {
    try {
      const response = await fetch(`${this.api}/ready`)
      await response.arrayBuffer()
      return response.ok
    } catch {
      return false
    }
  }

  /** Ends the process as a crash does. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Runs an action of the management API, and returns its data. */
  async act(action: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const response = await fetch(`${this.api}/api/actions/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { error: boolean; error_string: string; data: Record<string, unknown> }
    if (answer.error) throw new Error(`${action}: ${answer.error_string}`)
    return answer.data
  }

  /** Calls a tool of `/mcp`. */
  async tool(name: string, args: object): Promise<unknown> {
    const response = await fetch(`${this.http}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    return response.json()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.#folder[Symbol.asyncDispose]()
  }
}
