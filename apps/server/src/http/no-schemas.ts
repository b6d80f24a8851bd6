import type { FastifyServerOptions } from 'fastify'

function refuse(): never {
  throw new TypeError('routes of this server have no Fastify schemas: connectors check what they are sent')
}

/**
 * The Fastify option that leaves out its compilers of schemas. Fastify would load Ajv and a serializer for each instance: a
 * hundred files of a start that nothing here uses.
 */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
