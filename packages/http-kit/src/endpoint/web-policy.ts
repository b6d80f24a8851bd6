import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'

import { shownText } from '@signalbox/broker-core/internal'

import { Refusal } from '../admission/refusal.ts'
import type { OriginPolicy, TrustedOrigins } from '../origin.ts'
import { originPolicy } from '../origin.ts'

/** Host names without ports; `auto` among them stands for the local names and IP addresses, `*` for any. */
export type AllowedHosts = readonly string[]

export interface WebPolicyOptions {
  readonly trustedOrigins: TrustedOrigins
  /** The address the server binds to, which `auto` trusts. */
  readonly bindHost?: string | undefined
  /** What `auto` trusts as an Origin beside the local hosts. */
  readonly alsoLocal?: readonly string[] | undefined
  /**
   * Which hosts a Host header may name while every caller is anonymous, so that a page cannot reach the server by a name
   * of its own (DNS rebinding). @default ['*']
   */
  readonly allowedHosts?: AllowedHosts | undefined
  /** The host of the server's public URL, which `auto` allows. */
  readonly publicHost?: string | undefined
  /** Every caller is anonymous: what a browser sends needs no token, so that more of it is looked at. */
  readonly anonymous: boolean
}

/** A longer Host header is refused unread, in characters. */
const MAX_HOST = 300

const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '::1', '0.0.0.0']

/** Tells requests that web pages make apart from others, and which pages may make them. */
export class WebPolicy {
  readonly #originAllowed: OriginPolicy
  readonly #anyOrigin: boolean
  readonly #anonymous: boolean
  /** Undefined where every host will do. */
  readonly #hosts: ReadonlySet<string> | undefined
  /** With `auto` an IP address will do: nobody can make a name of his own out of one. */
  readonly #addresses: boolean
  /** Most requests name the server as the one before did. */
  #lastAllowed: string | undefined

  /** @throws RangeError for a list entry that is not an origin */
  constructor(options: WebPolicyOptions) {
    const { trustedOrigins, bindHost, alsoLocal, allowedHosts = ['*'], publicHost, anonymous } = options
    this.#originAllowed = originPolicy(trustedOrigins, {
      ...(bindHost === undefined ? {} : { bindHost }),
      ...(alsoLocal === undefined ? {} : { alsoLocal }),
    })
    this.#anyOrigin = trustedOrigins === '*'
    this.#anonymous = anonymous
    this.#addresses = allowedHosts.includes('auto')
    if (!allowedHosts.includes('*')) {
      const own = [bindHost, publicHost].filter((host) => host !== undefined && host !== '')
      const local = this.#addresses ? [...LOCAL_NAMES, ...own] : []
      this.#hosts = new Set([...allowedHosts, ...local].map((host) => hostName(String(host))))
    }
  }

  /** Returns why a request with these headers may not go on; undefined when it may. */
  refusal(headers: IncomingHttpHeaders): Refusal | undefined {
    const { origin } = headers
    if (!this.#originAllowed(origin)) {
      return new Refusal('origin', 'origin not allowed')
    }
    if (!this.#anonymous) return undefined
    // A navigation or an image has no Origin. A page whose Origin is trusted may be another site.
    if (headers['sec-fetch-site'] === 'cross-site' && !this.#anyOrigin && (origin === undefined || origin === '')) {
      return new Refusal('cross_site', 'requests that pages of other sites make without CORS are refused')
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

/** The host of a Host header or of a list entry, in lower case, without port, brackets and a final dot. */
function hostName(text: string): string {
  const lower = text.trim().toLowerCase()
  if (lower.startsWith('[')) return lower.slice(1, Math.max(lower.indexOf(']'), 1))
  if (isIP(lower) === 6) return lower
  const colon = lower.indexOf(':')
  const host = colon === -1 ? lower : lower.slice(0, colon)
  return host.endsWith('.') ? host.slice(0, -1) : host
}
