import { isIP } from 'node:net'

import { shownText } from '@signalbox/broker-core/internal'

import { Refusal } from '../admission/refusal.ts'
import type { TrustedProxies } from '../admission/trusted-proxies.ts'
import type { HttpRequest } from '../http-message.ts'
import type { OriginPolicy, TrustedOrigins } from '../origin.ts'
import { originPolicy, ownOriginHost } from '../origin.ts'

/** Host names without ports. `auto` allows the local names and IP addresses, `*` allows any host. */
export type AllowedHosts = readonly string[]

/** Options of {@link WebPolicy}. */
export interface WebPolicyOptions {
  readonly trustedOrigins: TrustedOrigins
  /**
   * If `true`, `auto` trusts only the origin under which a request reaches the server. Otherwise it trusts the local
   * hosts and the bind address, on any port.
   * @default false
   */
  readonly ownOriginOnly?: boolean | undefined
  /** The proxies that may end the TLS of browsers. @default none */
  readonly trustedProxies?: TrustedProxies | undefined
  /** The setting of `trustedOrigins`, for the text of a refusal. @default trustedOrigins */
  readonly originsSetting?: string | undefined
  /** The address that the server binds to. `auto` trusts it. */
  readonly bindHost?: string | undefined
  /** Hosts that `auto` trusts in an Origin header, in addition to the local hosts. */
  readonly alsoLocal?: readonly string[] | undefined
  /**
   * The hosts that a Host header may name while every caller is anonymous. Prevents a page from reaching the server
   * under the page's own host name (DNS rebinding).
   * @default ['*']
   */
  readonly allowedHosts?: AllowedHosts | undefined
  /** The host of the server's public URL. `auto` allows it. */
  readonly publicHost?: string | undefined
  /** `true` if every caller is anonymous. A browser then needs no token, so more headers are checked. */
  readonly anonymous: boolean
}

/** The longest Host header that is read, in characters. */
const MAX_HOST = 300

const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '::1', '0.0.0.0']

/** Decides which requests of web pages are allowed. */
export class WebPolicy {
  /** `undefined` if only the server's own origin is allowed. */
  readonly #originAllowed: OriginPolicy | undefined
  /** The names of the server that the operator or the system chose. */
  readonly #ownNames: ReadonlySet<string>
  readonly #proxies: TrustedProxies | undefined
  readonly #anyOrigin: boolean
  readonly #originsSetting: string
  readonly #anonymous: boolean
  /** `undefined` if every host is allowed. */
  readonly #hosts: ReadonlySet<string> | undefined
  /** `true` if IP addresses are allowed: an attacker cannot register an IP address as a host name. */
  readonly #addresses: boolean
  /** The last allowed header: most requests name the same host as the previous one. */
  #lastAllowed: string | undefined

  /** @throws RangeError for a list entry that is not an origin */
  constructor(options: WebPolicyOptions) {
    const { trustedOrigins, bindHost, alsoLocal, allowedHosts = ['*'], publicHost, anonymous } = options
    if (trustedOrigins !== 'auto' || options.ownOriginOnly !== true) {
      this.#originAllowed = originPolicy(trustedOrigins, {
        ...(bindHost === undefined ? {} : { bindHost }),
        ...(alsoLocal === undefined ? {} : { alsoLocal }),
      })
    }
    this.#proxies = options.trustedProxies
    this.#anyOrigin = trustedOrigins === '*'
    this.#originsSetting = options.originsSetting ?? 'trustedOrigins'
    this.#anonymous = anonymous
    this.#addresses = allowedHosts.includes('auto')
    const own = [...LOCAL_NAMES, ...[bindHost, publicHost].filter((host) => host !== undefined && host !== '')]
    this.#ownNames = new Set([...allowedHosts, ...own].map((host) => hostName(String(host))))
    if (!allowedHosts.includes('*')) {
      this.#hosts = this.#addresses ? this.#ownNames : new Set(allowedHosts.map(hostName))
    }
  }

  /** Returns the refusal of a request, or `undefined` if its headers are allowed. */
  refusal(request: Pick<HttpRequest, 'headers' | 'socket'>): Refusal | undefined {
    const { headers } = request
    const { origin } = headers
    if (!(this.#originAllowed?.(origin) ?? this.#isOwn(request, origin))) {
      return new Refusal('origin', `origin not allowed; add it to ${this.#originsSetting}`)
    }
    if (!this.#anonymous) return undefined
    // A navigation or an image has no Origin. A page with a trusted Origin may be on another site.
    if (headers['sec-fetch-site'] === 'cross-site' && !this.#anyOrigin && (origin === undefined || origin === '')) {
      return new Refusal(
        'cross_site',
        'a page of another site made this request without CORS; such requests are not allowed',
      )
    }
    const { host } = headers
    if (this.#hosts === undefined || host === undefined || this.#allows(host)) return undefined
    return new Refusal(
      'host',
      `host not allowed: ${shownText(host, 100)}; add it to HTTP_ALLOWED_HOSTS to reach the server by this name`,
    )
  }

  /**
   * Returns `true` for the server's own origin. Without authentication its host must be a name of the server or an IP
   * address: a page can reach the server under the page's own host name (DNS rebinding).
   */
  #isOwn({ headers, socket }: Pick<HttpRequest, 'headers' | 'socket'>, origin: string | undefined): boolean {
    if (origin === undefined || origin === '') return true
    const { encrypted = false, remoteAddress = '' } = socket
    const proxied = this.#proxies?.includes(remoteAddress) === true
    const host = ownOriginHost(origin, { host: headers.host, encrypted, proxied })
    if (host === undefined || !this.#anonymous) return host !== undefined
    return this.#ownNames.has(host) || isIP(host) !== 0
  }

  #allows(header: string): boolean {
    if (header === this.#lastAllowed) return true
    if (header.length > MAX_HOST) return false
    const host = hostName(header)
    const allowed = this.#hosts?.has(host) === true || (this.#addresses && isIP(host) !== 0)
    if (allowed) this.#lastAllowed = header
    return allowed
  }
}

/** Returns the host of a Host header or of a list entry, in lower case, without port, brackets and final dot. */
function hostName(text: string): string {
  const lower = text.trim().toLowerCase()
  if (lower.startsWith('[')) return lower.slice(1, Math.max(lower.indexOf(']'), 1))
  if (isIP(lower) === 6) return lower
  const colon = lower.indexOf(':')
  const host = colon === -1 ? lower : lower.slice(0, colon)
  return host.endsWith('.') ? host.slice(0, -1) : host
}
