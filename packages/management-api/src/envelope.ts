import type { FastifyReply } from 'fastify'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import type { ManagementError } from './errors.ts'

/**
 * The envelope of every JSON answer of the management API.
 */
export interface ResponseEnvelope {
  readonly error: boolean
  /** Empty on success. */
  readonly error_string: string
  /** After an error: its `code` and details; null until the server is ready. */
  readonly data: unknown
}

export function success(data: unknown): ResponseEnvelope {
  return { error: false, error_string: '', data }
}

export function failure({ code, message, details }: ManagementError): ResponseEnvelope {
  return { error: true, error_string: message, data: code === 'NOT_READY' ? null : { code, ...details } }
}

/** Returns the schema of a successful answer with this data. */
export function successSchema(data: TSchema) {
  return Type.Object({ error: Type.Literal(false), error_string: Type.Literal(''), data })
}

export const failureSchema = Type.Object({
  error: Type.Literal(true),
  error_string: Type.String({ description: 'The problem, and the allowed values.' }),
  data: Type.Union([
    Type.Object({ code: Type.String({ description: 'A stable code; docs/reference/errors.md lists them.' }) }),
    Type.Null(),
  ]),
})

export const JSON_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

export function sendEnvelope(reply: FastifyReply, status: number, envelope: ResponseEnvelope): FastifyReply {
  return reply.code(status).headers(JSON_HEADERS).send(JSON.stringify(envelope))
}
