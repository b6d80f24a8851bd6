import type { HttpRequest } from '@signalbox/http-kit'

const PARAMETER = 'A2A-Version'

/** Returns the version of A2A that a request names in the header `A2A-Version` or in the query; empty if it names none. */
export function spokenVersion({ headers, url = '' }: Pick<HttpRequest, 'headers' | 'url'>): string {
  const header = headers['a2a-version']
  if (header !== undefined) return String(header).trim()
  const mark = url.indexOf('?')
  if (mark === -1) return ''
  return new URLSearchParams(url.slice(mark + 1)).get(PARAMETER)?.trim() ?? ''
}
