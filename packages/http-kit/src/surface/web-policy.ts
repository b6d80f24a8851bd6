import { isIP } from 'node:net'

import { shownText } from '@signalbox/broker-core/internal'

import { Refusal } from '../admission/refusal.ts'
import type { TrustedProxies } from '../admission/trusted-proxies.ts'
import type { HttpRequest } from './http-message.ts'

/** Host names without ports. `auto` allows the local names and IP addresses, `*` allows any host. */
export type AllowedHosts = readonly string[]

/** Options of {@link WebPolicy}. */
interface WebPolicyOptions {
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
      this.#originAllowed = originPolicy(trustedOrigins, { bindHost, alsoLocal })
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

/** `auto`, `*`, or exactly these origins. */
export type TrustedOrigins = 'auto' | '*' | readonly string[]

/** Hosts that `auto` trusts in addition to the local ones. */
export interface OriginPolicyOptions {
  /** The address that the server binds to. `auto` trusts it. @default none */
  readonly bindHost?: string | undefined
  /** Hosts that `auto` trusts in addition to {@link LOCAL_HOSTS}, such as {@link MCP_LOCAL_HOSTS}. @default none */
  readonly alsoLocal?: readonly string[] | undefined
}

/** Hosts that `auto` trusts on every connector. */
export const LOCAL_HOSTS: readonly string[] = ['localhost', '127.0.0.1']

/** Hosts that `auto` trusts on the MCP connector, in addition to {@link LOCAL_HOSTS}. */
export const MCP_LOCAL_HOSTS: readonly string[] = ['::1', '[::1]', '0.0.0.0']

/** Returns `true` if a request with this Origin header is allowed. */
export type OriginPolicy = (origin: string | undefined) => boolean

const ORIGIN = /^(https?):\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?$/
/** Browsers send brackets, but the specification lists `::1` without them. */
const BARE_IPV6 = /^(https?):\/\/([0-9a-f:.]+)$/

/**
 * The longest Origin header that is read, in characters. Browsers send a scheme, a host name of at most 253
 * characters and a port.
 */
const MAX_ORIGIN = 300

interface Origin {
  readonly scheme: string
  /** IPv6 addresses without their brackets. */
  readonly host: string
  readonly port: number
}

/**
 * Returns the policy that decides which browser origins may call. `auto` allows http and https, any port, the local
 * hosts and the bind address. A list compares scheme, host and port exactly. A missing or empty Origin is always
 * allowed, because no browser sent it.
 * @throws RangeError for a list entry that is not an origin
 */
export function originPolicy(trusted: TrustedOrigins, options: OriginPolicyOptions = {}): OriginPolicy {
  if (trusted === '*') return () => true
  if (trusted === 'auto') {
    const hosts = new Set([...LOCAL_HOSTS, ...(options.alsoLocal ?? [])].map(withoutBrackets))
    if (options.bindHost !== undefined) hosts.add(withoutBrackets(options.bindHost.toLowerCase()))
    return (origin) => {
      if (origin === undefined || origin === '') return true
      const parsed = parseOrigin(origin)
      return parsed !== undefined && hosts.has(parsed.host)
    }
  }
  const allowed = new Set(trusted.map(listEntry))
  return (origin) => {
    if (origin === undefined || origin === '') return true
    const parsed = parseOrigin(origin)
    return parsed !== undefined && allowed.has(originKey(parsed))
  }
}

/**
 * Parses the setting: `auto`, `*`, or a comma-separated list of origins.
 * @throws RangeError for an entry that is not an origin
 */
export function parseTrustedOrigins(setting: string): TrustedOrigins {
  const text = setting.trim()
  if (text === 'auto' || text === '*') return text
  const list = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  if (list.length === 0) throw new RangeError('trusted origins: allowed are auto, * or a list of origins')
  list.forEach(listEntry)
  return list
}

/** The listener under which a request reaches the server. */
interface ReachedAs {
  /** The Host header. */
  readonly host: string | undefined
  /** `true` if the connection has TLS. */
  readonly encrypted: boolean
  /** `true` if a trusted proxy made the connection, which may end the TLS of browsers. */
  readonly proxied: boolean
}

/**
 * Returns the host of an origin that is the one under which the request reaches the server: the same scheme, host and
 * port. Returns `undefined` for any other origin.
 */
function ownOriginHost(origin: string, { host, encrypted, proxied }: ReachedAs): string | undefined {
  const parsed = parseOrigin(origin)
  if (parsed === undefined || host === undefined) return undefined
  const secure = parsed.scheme === 'https'
  if (secure !== encrypted && !proxied) return undefined
  const reached = parseOrigin(`${parsed.scheme}://${host.toLowerCase()}`)
  return reached !== undefined && originKey(reached) === originKey(parsed) ? parsed.host : undefined
}

/** Parses strictly: browsers write an origin in one way only, and `URL` would accept and repair others. */
function parseOrigin(text: string): Origin | undefined {
  if (text.length > MAX_ORIGIN) return undefined
  const match = ORIGIN.exec(text) ?? bareIpv6(text)
  if (match === null) return undefined
  const [, scheme = '', host = '', port] = match
  const number = port === undefined ? (scheme === 'https' ? 443 : 80) : Number(port)
  return number > 65_535 ? undefined : { scheme, host: withoutBrackets(host), port: number }
}

function bareIpv6(text: string): RegExpExecArray | null {
  const match = BARE_IPV6.exec(text)
  return (match?.[2]?.split(':').length ?? 0) > 2 ? match : null
}

function listEntry(entry: string): string {
  const parsed = parseOrigin(entry.toLowerCase())
  if (parsed === undefined) {
    throw new RangeError(
      `trusted origins: ${JSON.stringify(entry)} is not an origin; write scheme, host and port, such as https://app.example.com:8443`,
    )
  }
  return originKey(parsed)
}

function originKey({ scheme, host, port }: Origin): string {
  return `${scheme}://${host}|${port}`
}

function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}

/** CORS settings, named as in the specification's table. */
export interface CorsSettings {
  /** `*`, or origins that are compared exactly. */
  readonly allowOrigins: readonly string[]
  readonly allowMethods: readonly string[]
  readonly allowHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  readonly allowCredentials: boolean
  /** Time that a browser caches the answer to a preflight, in seconds. */
  readonly maxAge: number
}

/** The defaults of the specification ("CORS"). */
export const CORS_DEFAULTS: CorsSettings = {
  allowOrigins: ['*'],
  allowMethods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
  allowHeaders: ['Authorization', 'Content-Type', 'MCP-Protocol-Version', 'MCP-Session-Id', 'Last-Event-ID', 'Accept'],
  exposeHeaders: ['MCP-Session-Id', 'MCP-Protocol-Version'],
  allowCredentials: false,
  maxAge: 86_400,
}

/** The same settings as options of `@fastify/cors`. */
export interface FastifyCorsOptions {
  readonly origin: string | string[]
  readonly methods: string[]
  readonly allowedHeaders: string[]
  readonly exposedHeaders: string[]
  readonly credentials: boolean
  readonly maxAge: number
  /** Answers every OPTIONS request, also one that is not a complete preflight. */
  readonly strictPreflight: false
}

/**
 * Converts the settings to options for `app.register(cors, …)`. Preflights are then answered before any connector
 * runs, and a list of origins adds `Vary: Origin`.
 * @throws RangeError for credentials together with `*`, which browsers reject
 */
export function fastifyCorsOptions(settings: CorsSettings = CORS_DEFAULTS): FastifyCorsOptions {
  const any = settings.allowOrigins.includes('*')
  if (any && settings.allowCredentials) {
    throw new RangeError('CORS: credentials cannot be allowed for every origin; list the origins')
  }
  return {
    origin: any ? '*' : [...settings.allowOrigins],
    methods: [...settings.allowMethods],
    allowedHeaders: [...settings.allowHeaders],
    exposedHeaders: [...settings.exposeHeaders],
    credentials: settings.allowCredentials,
    maxAge: settings.maxAge,
    strictPreflight: false,
  }
}
