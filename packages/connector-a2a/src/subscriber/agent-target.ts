import type { Dispatcher } from 'undici'

import type { AgentConnections } from './agent-connections.ts'

/** Where an agent is: its url, taken apart once. */
export class AgentTarget {
  readonly url: string
  /** The value of the header Host. */
  readonly host: string
  /** To be asked before each call; undefined where each connection asks by itself. */
  readonly permittedNow: (() => Promise<boolean>) | undefined
  readonly #hostPermitted: () => boolean
  readonly #origin: string
  readonly #path: string
  readonly #connections: AgentConnections
  /** For the proxy, where that reads the request. */
  readonly #proxyHeaders: readonly string[]

  /** @throws TypeError for what is not a URL */
  constructor(url: string, connections: AgentConnections) {
    const parsed = new URL(url)
    const { protocol, host, origin, pathname, search } = parsed
    const { proxy } = connections
    connections.prepare()
    const readByProxy = proxy !== undefined && protocol === 'http:'
    this.url = url
    this.host = host
    this.permittedNow = proxy === undefined ? undefined : () => connections.permitsNow(parsed)
    this.#hostPermitted = connections.hostCheck(parsed)
    this.#origin = origin
    this.#path = (readByProxy ? origin : '') + pathname + search
    this.#connections = connections
    this.#proxyHeaders = readByProxy ? proxy.headers : []
  }

  /**
   * Whether its host may be called at all (R8): node resolves no name, and so asks nobody, where the host is an address.
   * What a name stands for is looked at with each connection. Asked with each call: where the server itself listens is
   * known after its agents are.
   */
  get permitted(): boolean {
    return this.#hostPermitted()
  }

  /**
   * Sends a POST, once: a request is not tried again. What comes of it is told to the handler, some of it perhaps before
   * this returns. The headers are names and values in turn, Host among them, Content-Length not.
   */
  post(headers: string[], body: Uint8Array, handler: Dispatcher.DispatchHandler): void {
    if (this.#proxyHeaders.length > 0) headers.push(...this.#proxyHeaders)
    this.#connections.to(this.#origin).dispatch({ path: this.#path, method: 'POST', headers, body }, handler)
  }
}
