import type { Dispatcher } from 'undici'

import type { AgentConnections } from './agent-connections.ts'

/** An agent's URL, parsed once. */
export class AgentTarget {
  readonly url: string
  /** The value of the header Host. */
  readonly host: string
  /** Checks the agent's address before each call; undefined if each connection does that. */
  readonly permittedNow: (() => Promise<boolean>) | undefined
  readonly #hostPermitted: () => boolean
  readonly #origin: string
  readonly #path: string
  readonly #account: string
  readonly #connections: AgentConnections
  /** Headers for a proxy that reads the request. */
  readonly #proxyHeaders: readonly string[]

  /**
   * @param account The account of the agent's owner, which lookups of the host count against
   * @throws TypeError if the value is not a URL
   */
  constructor(url: string, account: string, connections: AgentConnections) {
    const parsed = new URL(url)
    const { protocol, host, origin, pathname, search } = parsed
    const { proxy } = connections
    connections.prepare()
    const readByProxy = proxy !== undefined && protocol === 'http:'
    this.url = url
    this.host = host
    this.permittedNow = proxy === undefined ? undefined : () => connections.permitsNow(parsed, account)
    this.#hostPermitted = connections.hostCheck(parsed)
    this.#origin = origin
    this.#account = account
    this.#path = (readByProxy ? origin : '') + pathname + search
    this.#connections = connections
    this.#proxyHeaders = readByProxy ? proxy.headers : []
  }

  /**
   * True if the policy allows the URL's host. Needed for hosts that are addresses, because node
   * resolves no name for them; the addresses of names are checked when a connection opens. Read it
   * for each call: the server's own addresses become known only after the agents.
   */
  get permitted(): boolean {
    return this.#hostPermitted()
  }

  /** Sends one POST, as {@link request} does. */
  post(headers: string[], body: Uint8Array, handler: Dispatcher.DispatchHandler): void {
    this.request('POST', headers, body, handler)
  }

  /**
   * Sends one request, without retries, and passes the events of the exchange to the handler, possibly
   * before this returns. The headers are names and values in turn, with Host and without
   * Content-Length.
   * @param below A path below that of the url, with a query. @default the url itself
   */
  request(
    method: 'DELETE' | 'GET' | 'POST',
    headers: string[],
    body: Uint8Array | null,
    handler: Dispatcher.DispatchHandler,
    below = '',
  ): void {
    if (this.#proxyHeaders.length > 0) headers.push(...this.#proxyHeaders)
    this.#connections
      .to(this.#origin, this.#account)
      .dispatch(
        { path: below === '' ? this.#path : this.#path.replace(/\/$/, '') + below, method, headers, body },
        handler,
      )
  }
}
