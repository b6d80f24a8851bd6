import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'

import { shownText } from '@signalbox/broker-core/internal'

import { Refusal } from '../admission/refusal.ts'
import type { OriginPolicy, TrustedOrigins } from '../origin.ts'
import { originPolicy } from '../origin.ts'

/** Host names without ports. `auto` allows the local names and IP addresses, `*` allows any host. */
export type AllowedHosts = readonly string[]

/** Options of {@link WebPolicy}. */
export interface WebPolicyOptions {
  readonly trustedOrigins: TrustedOrigins
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
  readonly #originAllowed: OriginPolicy
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
    this.#originAllowed = originPolicy(trustedOrigins, {
      ...(bindHost === undefined ? {} : { bindHost }),
      ...(alsoLocal === undefined ? {} : { alsoLocal }),
    })
    this.#anyOrigin = trustedOrigins === '*'
    this.#originsSetting = options.originsSetting ?? 'trustedOrigins'
    this.#anonymous = anonymous
    this.#addresses = allowedHosts.includes('auto')
    if (!allowedHosts.includes('*')) {
      const own = [bindHost, publicHost].filter((host) => host !== undefined && host !== '')
      const local = this.#addresses ? [...LOCAL_NAMES, ...own] : []
      this.#hosts = new Set([...allowedHosts, ...local].map((host) => hostName(String(host))))
    }
  }

  /** Returns the refusal of a request with these headers, or `undefined` if the request is allowed. */
  refusal(headers: IncomingHttpHeaders): Refusal | undefined {
    const { origin } = headers
    if (!this.#originAllowed(origin)) {
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
