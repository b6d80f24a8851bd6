import { freePort } from '@signalbox/testkit/free-port'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { startHosted } from './hosted-servers.ts'

/** The settings of a server, as environment variables. */
export type Settings = Readonly<Record<string, string>>

/** A server with a store of its own. */
export class Server implements AsyncDisposable {
  readonly #folder: TemporaryFolder
  readonly #ports: readonly [number, number]
  readonly #end: () => Promise<void>

  protected constructor(folder: TemporaryFolder, ports: readonly [number, number], end: () => Promise<void>) {
    this.#folder = folder
    this.#ports = ports
    this.#end = end
  }

  static async start(settings: Settings = {}): Promise<Server> {
    const folder = await TemporaryFolder.create('console')
    const ports = [await freePort(), await freePort()] as const
    const stop = await startHosted({ ...settingsOf(folder, ports), SHUTDOWN_SECONDS: '0', ...settings })
    return new Server(folder, ports, stop)
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
    await this.#end()
    await this.#folder[Symbol.asyncDispose]()
  }
}

/** Returns the settings of a server that is reached at these ports of the shared and the management listener. */
export function settingsOf(folder: TemporaryFolder, [http, api]: readonly [number, number]): Settings {
  return {
    HTTP_PORT: String(http),
    API_PORT: String(api),
    STORE_PATH: folder.join('data'),
    LOG_LEVEL: 'warn',
  }
}
