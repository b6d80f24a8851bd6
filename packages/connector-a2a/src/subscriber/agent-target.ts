import type { ClientRequest, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { urlToHttpOptions } from 'node:url'

import type { AgentConnections } from './agent-connections.ts'

/** Where an agent is: its url, taken apart once. */
export class AgentTarget {
  readonly url: string
  /** The value of the header Host. */
  readonly host: string
  /**
   * Whether its host may be called at all (R8): node resolves no name, and so asks nobody, where the host is an address.
   * What a name stands for is looked at with each connection.
   */
  readonly permitted: boolean
  /** To be asked before each call; undefined where each connection asks by itself. */
  readonly permittedNow: (() => Promise<boolean>) | undefined
  readonly #options: RequestOptions
  readonly #request: typeof httpRequest
  /** For the proxy, where that reads the request. */
  readonly #proxyHeaders: readonly string[]

  /** @throws TypeError for what is not a URL */
  constructor(url: string, connections: AgentConnections) {
    const parsed = new URL(url)
    const { protocol, hostname, port, path } = urlToHttpOptions(parsed)
    this.url = url
    this.host = parsed.host
    this.permitted = connections.permits(parsed.hostname)
    const { proxy } = connections
    this.permittedNow = proxy === undefined ? undefined : () => connections.permitsNow(parsed)
    const secure = parsed.protocol === 'https:'
    const readByProxy = proxy !== undefined && !secure
    this.#proxyHeaders = readByProxy ? proxy.headers : []
    this.#options = {
      protocol,
      hostname,
      port,
      path: readByProxy ? `${parsed.origin}${path}` : path,
      agent: connections.for(parsed.protocol),
      method: 'POST',
    }
    this.#request = secure ? httpsRequest : httpRequest
  }

  /**
   * Begins a POST. The headers are names and values in turn, Host among them.
   * @throws TypeError for a header that HTTP cannot carry
   */
  post(headers: readonly string[]): ClientRequest {
    const all = this.#proxyHeaders.length === 0 ? headers : [...headers, ...this.#proxyHeaders]
    return this.#request({ ...this.#options, headers: all })
  }
}
