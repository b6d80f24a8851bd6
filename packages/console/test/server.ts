import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { ServerUrls } from './hosted-servers.ts'
import { startHosted } from './hosted-servers.ts'
import { tokenOf } from './tokens.ts'

/** The settings of a server, as environment variables. */
export type Settings = Readonly<Record<string, string>>

/** A server with a store of its own. */
export class Server implements AsyncDisposable {
  readonly #folder: TemporaryFolder
  readonly #urls: ServerUrls
  readonly #end: () => Promise<void>
  readonly #settings: Settings

  protected constructor(folder: TemporaryFolder, urls: ServerUrls, end: () => Promise<void>, settings: Settings) {
    this.#folder = folder
    this.#urls = urls
    this.#end = end
    this.#settings = settings
  }

  static async start(settings: Settings = {}): Promise<Server> {
    const folder = await TemporaryFolder.create('console')
    const { stop, ...urls } = await startHosted({ ...settingsOf(folder, 0, 0), SHUTDOWN_SECONDS: '0', ...settings })
    return new Server(folder, urls, stop, settings)
  }

  /** The management listener. */
  get api(): string {
    return this.#urls.api
  }

  /** The shared listener. */
  get http(): string {
    return this.#urls.http
  }

  get console(): string {
    return `${this.api}/console/`
  }

  /** Returns the headers by which the shared listener knows a client: none without authentication. */
  headersOf(client: string): Readonly<Record<string, string>> {
    return this.#bearer('AUTHENTICATION_ENABLE', client)
  }

  /** Returns the headers by which the management listener knows an operator: none without authentication. */
  operatorHeaders(operator: string): Readonly<Record<string, string>> {
    return this.#bearer('API_AUTHENTICATION_ENABLE', operator)
  }

  #bearer(setting: string, subject: string): Readonly<Record<string, string>> {
    const { [setting]: isOn, AUTHENTICATION_SECRET: secret = '' } = this.#settings
    return isOn === 'true' ? { authorization: `Bearer ${tokenOf(secret, ['Admin'], 3_600, subject)}` } : {}
  }

  /** Runs an action of the management API, and returns its data. */
  async act(action: string, body: object, operator = 'operator'): Promise<Readonly<Record<string, unknown>>> {
    const response = await fetch(`${this.api}/api/actions/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.operatorHeaders(operator) },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { error: boolean; error_string: string; data: Record<string, unknown> }
    if (answer.error) throw new Error(`${action}: ${answer.error_string}`)
    return answer.data
  }

  /** Calls a tool of `/mcp`. */
  async tool(name: string, args: object, client = 'assistant'): Promise<unknown> {
    const response = await fetch(`${this.http}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...this.headersOf(client),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    return response.json()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
    await this.#folder[Symbol.asyncDispose]()
  }
}

/** Returns the settings of a server that has these ports; 0 for free ones. */
export function settingsOf(folder: TemporaryFolder, http: number, api: number): Settings {
  return {
    HTTP_PORT: String(http),
    API_PORT: String(api),
    STORE_PATH: folder.join('data'),
    LOG_LEVEL: 'warn',
  }
}
