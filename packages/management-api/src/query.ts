import type { FastifyRequest } from 'fastify'

/** The query of a request as it was written. */
export function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}
