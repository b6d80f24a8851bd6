import type { FastifyRequest } from 'fastify'

/** Returns the query string of a request, undecoded. */
export function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}
