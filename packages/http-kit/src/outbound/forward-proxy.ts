import { Buffer } from 'node:buffer'
import type { ClientRequest } from 'node:http'
import type { Socket } from 'node:net'
import { isIPv6 } from 'node:net'
import process from 'node:process'

import type { AddressLookup } from './address-policy.ts'

// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const { request: httpRequest } = process.getBuiltinModule('node:http')

/** The address of a forward proxy, and the credentials for it. */
interface ProxyAddress {
  readonly host: string
  readonly port: number
  /** The value of Proxy-Authorization (RFC 9110, section 11.7.2). */
  readonly authorization: string | undefined
}

/** The proxy opened no tunnel. */
class ProxyError extends Error {
  override readonly name = 'ProxyError'
  readonly code: 'AGENT_PROXY_REFUSED' | 'ETIMEDOUT'

  constructor(code: ProxyError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Reads the URL of a forward proxy: `http://[user:password@]host[:port]`.
 * @throws RangeError, without the URL in its message: the URL may contain a password
 */
export function readProxyUrl(text: string): ProxyAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') throw notAProxy()
  const { hostname, port, username, password } = url
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 80 : Number(port),
    authorization: username === '' && password === '' ? undefined : basic(username, password),
  }
}

function basic(username: string, password: string): string {
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(credentials).toString('base64')}`
  } catch {
    throw notAProxy()
  }
}

function notAProxy(): RangeError {
  return new RangeError('agentProxyUrl is not the URL of a proxy; it must be http://[user:password@]host[:port]')
}

/** The time for the proxy to open a tunnel, in ms. Most calls have a shorter deadline. */
const TUNNEL_MS = 30_000

/**
 * A forward proxy. Plain HTTP requests have the absolute form (RFC 9112, section 3.2.2). TLS uses a
 * tunnel that CONNECT opens (RFC 9110, section 9.3.6), so that the proxy cannot read it.
 */
export class ForwardProxy {
  readonly #address: ProxyAddress
  /** Resolves the name of the proxy. */
  readonly lookup: AddressLookup
  readonly #opening = new Set<ClientRequest>()

  /** @throws RangeError if {@link readProxyUrl} does not accept the URL */
  constructor(url: string, lookup: AddressLookup) {
    this.#address = readProxyUrl(url)
    this.lookup = lookup
  }

  /** Headers for the proxy: name, value, name, value. */
  get headers(): readonly string[] {
    const { authorization } = this.#address
    return authorization === undefined ? [] : ['Proxy-Authorization', authorization]
  }

  /** The address for connections to the proxy itself. */
  get endpoint(): { readonly protocol: 'http:'; readonly hostname: string; readonly port: string } {
    const { host, port } = this.#address
    return { protocol: 'http:', hostname: host, port: String(port) }
  }

  /** Opens a tunnel. `done` is called once. */
  tunnel(host: string, port: number, done: (error: Error | null, socket?: Socket) => void): void {
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`
    const request = httpRequest({
      host: this.#address.host,
      port: this.#address.port,
      method: 'CONNECT',
      path: authority,
      headers: ['Host', authority, ...this.headers],
      agent: false,
      lookup: this.lookup,
    })
    const timer = setTimeout(
      () => request.destroy(new ProxyError('ETIMEDOUT', 'the proxy did not open a tunnel in time')),
      TUNNEL_MS,
    )
    timer.unref()
    const settle = (error: Error | null, socket?: Socket): void => {
      if (!this.#opening.delete(request)) return
      clearTimeout(timer)
      done(error, socket)
    }
    this.#opening.add(request)
    request.on('connect', ({ statusCode = 0 }, socket, head) => {
      // Bytes before the TLS handshake with the server do not come from the server.
      if (statusCode >= 200 && statusCode <= 299 && head.byteLength === 0) {
        settle(null, socket)
        return
      }
      socket.destroy()
      settle(new ProxyError('AGENT_PROXY_REFUSED', `the proxy refused a tunnel: HTTP ${statusCode}`))
    })
    request.on('error', settle)
    request.on('close', () => settle(new ProxyError('AGENT_PROXY_REFUSED', 'the proxy closed the connection')))
    request.end()
  }

  /** Aborts the tunnels that are not open yet. */
  close(): void {
    for (const request of this.#opening) request.destroy()
  }
}
