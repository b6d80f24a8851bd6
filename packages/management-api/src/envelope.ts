import { decodeText } from '@signalbox/broker-core'
import { allSteps, jsonHeadersProblem, LARGE_BODY_BYTES, parseJsonInSteps } from '@signalbox/http-kit/internal'
import type { HttpExchange, HttpRequest } from '@signalbox/http-kit'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { TSchema } from 'typebox'

import { ManagementError } from './errors.ts'

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

function failure({ code, message, details }: ManagementError): ResponseEnvelope {
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

/** An answer: members that are undefined are left out of its JSON. */
export type AnswerOf<Data> = Data extends readonly (infer Item)[]
  ? AnswerOf<Item>[]
  : Data extends object
    ? { [Key in keyof Data]: AnswerOf<Data[Key]> | (object extends Pick<Data, Key> ? undefined : never) }
    : Data

export const JSON_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

export function sendEnvelope(reply: FastifyReply, status: number, envelope: ResponseEnvelope): FastifyReply {
  return reply.code(status).headers(JSON_HEADERS).send(JSON.stringify(envelope))
}

/** Answers with an error in the envelope, and with the headers that belong to it. */
export function sendFailure(reply: FastifyReply, error: ManagementError): FastifyReply {
  if (error.code === 'UNAUTHENTICATED') reply.header('www-authenticate', 'Bearer realm="signalbox"')
  if (error.code === 'UPGRADE_REQUIRED') reply.headers({ upgrade: 'websocket', connection: 'Upgrade' })
  const { retry_after_seconds: retryAfter } = error.details
  if (typeof retryAfter === 'number') reply.header('retry-after', retryAfter)
  return sendEnvelope(reply, error.status, failure(error))
}

/** The parameters of an agent, in a call of the tool `agent_query`. */
const FREE_FORM = ['arguments', 'params']

/**
 * Returns the parsed body of a request.
 * @throws ManagementError MEDIA_TYPE_UNSUPPORTED, BODY_INVALID
 */
export async function jsonBody(exchange: HttpExchange, body: Uint8Array): Promise<unknown> {
  if (jsonHeadersProblem(exchange.request.headers) !== undefined) {
    throw new ManagementError(
      'MEDIA_TYPE_UNSUPPORTED',
      'Content-Type must be application/json (charset utf-8), without Content-Encoding',
    )
  }
  const text = decodeText(body)
  if (text === undefined) throw new ManagementError('BODY_INVALID', 'the body is not UTF-8; send JSON in UTF-8')
  const steps = parseJsonInSteps(text, { freeForm: FREE_FORM })
  const parsed = body.byteLength > LARGE_BODY_BYTES ? await exchange.inTurns(steps) : allSteps(steps)
  if ('value' in parsed) return parsed.value
  throw new ManagementError('BODY_INVALID', `the body is ${parsed.problem}`)
}

/** Returns the query string of a request, undecoded. */
export function queryOf({ url = '' }: HttpRequest): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}
