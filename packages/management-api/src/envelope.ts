import type { FastifyReply } from 'fastify'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import type { ManagementError } from './errors.ts'

/** What every JSON answer of the management API is (specification, "Management API envelope"). */
export interface ResponseEnvelope {
  readonly error: boolean
  /** Empty on success. */
  readonly error_string: string
  /** With an error: its `code` and what belongs to it; null until the server is ready. */
  readonly data: unknown
}

export function success(data: unknown): ResponseEnvelope {
  return { error: false, error_string: '', data }
}

export function failure({ code, message, details }: ManagementError): ResponseEnvelope {
  return { error: true, error_string: message, data: code === 'NOT_READY' ? null : { code, ...details } }
}

/** The schema of a success, around that of its data. */
export function successSchema(data: TSchema) {
  return Type.Object({ error: Type.Literal(false), error_string: Type.Literal(''), data })
}

export const failureSchema = Type.Object({
  error: Type.Literal(true),
  error_string: Type.String({ description: 'What is wrong, and what is allowed.' }),
  data: Type.Union([
    Type.Object({ code: Type.String({ description: 'Stable; docs/reference/errors.md lists them all.' }) }),
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
