import type { HttpRequest } from './surface/http-message.ts'

/** A server's URL as a client sees it. */
export interface BaseUrl {
  /** Without a slash at the end. */
  readonly base: string
  /** `true` if the operator set it. Otherwise a caller chose it, with its Host header. */
  readonly configured: boolean
}

/** A host name or an address, and a port. */
const HOST = /^(?:[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\])(?::[0-9]{1,5})?$/

/**
 * Reads the public URL of a server. Returns it without slashes at the end.
 * @throws RangeError for a URL that clients cannot append to
 */
export function readPublicUrl(text: string): string {
  const url = URL.parse(text)
  if (
    url === null ||
    !/^https?:\/\/[^/]/i.test(text) ||
    /[?#]/.test(text) ||
    url.username !== '' ||
    url.password !== ''
  )
    throw new RangeError(
      `${JSON.stringify(withoutCredentials(text))} is not allowed; allowed: an absolute http or https URL without query, fragment and credentials`,
    )
  let base = url.href
  while (base.endsWith('/')) base = base.slice(0, -1)
  return base
}

/** Problems are shown and logged. */
function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//…@')
}

/** Returns the base of the URLs in an answer: the public URL, or the host and scheme of the request. */
export function baseUrlOf({ headers, socket }: HttpRequest, publicUrl: string | undefined): BaseUrl {
  if (publicUrl !== undefined) return { base: publicUrl, configured: true }
  const scheme = socket.encrypted === true ? 'https' : 'http'
  const { host = '' } = headers
  return { base: `${scheme}://${HOST.test(host) ? host : addressOf(socket)}`, configured: false }
}

/** For a client that sent no host, or none that can be part of a URL. */
function addressOf({ localAddress = '127.0.0.1', localPort = 0 }: HttpRequest['socket']): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`
}
