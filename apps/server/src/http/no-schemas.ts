import type { FastifyServerOptions } from 'fastify'

function refuse(): never {
  throw new TypeError('routes of this server must not have Fastify schemas; the connectors validate requests')
}

/**
 * The Fastify option that disables its schema compilers. Fastify would load Ajv and a serializer
 * for each instance: a hundred files at each start that the server does not use.
 */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
