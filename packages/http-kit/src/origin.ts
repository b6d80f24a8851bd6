/** `auto`, `*`, or exactly these origins. */
export type TrustedOrigins = 'auto' | '*' | readonly string[]

/** Hosts that `auto` trusts in addition to the local ones. */
export interface OriginPolicyOptions {
  /** The address that the server binds to. `auto` trusts it. @default none */
  readonly bindHost?: string
  /** Hosts that `auto` trusts in addition to {@link LOCAL_HOSTS}, such as {@link MCP_LOCAL_HOSTS}. @default none */
  readonly alsoLocal?: readonly string[]
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
export interface ReachedAs {
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
export function ownOriginHost(origin: string, { host, encrypted, proxied }: ReachedAs): string | undefined {
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
