import type { CardShape } from './gateway-card.ts'
import type { HttpRequest } from '@signalbox/http-kit'

const V1 = /^1(?:\.[0-9]{1,9}){0,2}$/

/**
 * Returns the shape that a client asks for with `A2A-Version`, a header or a query parameter. Clients of
 * A2A 0.3 send none.
 */
export function requestedShape({ headers, url = '' }: HttpRequest): CardShape {
  const header = headers['a2a-version']
  const version = typeof header === 'string' && header !== '' ? header : queryVersion(url)
  return V1.test(version.trim()) ? '1.0' : 'both'
}

function queryVersion(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : (new URLSearchParams(url.slice(mark + 1)).get('A2A-Version') ?? '')
}
