import type { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import {
  allSteps,
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  LONG_TEXT_BYTES,
  parseJsonInSteps,
  TextParts,
} from '@signalbox/http-kit/internal'
import type { Unsettled } from '@signalbox/http-kit'
import { takeOver } from '@signalbox/http-kit/fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { TSchema } from 'typebox'

import { managementRefusal } from './access/operator-admission.ts'
import type { ManagementExchange, OperatorAdmission } from './access/operator-admission.ts'
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

/**
 * Answers with an envelope that contains bodies of messages, in pieces if it is long, and then settles the messages. If
 * the caller or the process has too many bytes of answers, the messages go back to their queue.
 * @throws ManagementError TOO_MANY_REQUESTS
 */
export function sendParts(
  reply: FastifyReply,
  exchange: ManagementExchange,
  envelope: ResponseEnvelope,
  unsettled?: Unsettled,
): FastifyReply {
  const text = TextParts.json(envelope)
  if (text.heldBytes < LONG_TEXT_BYTES && unsettled === undefined) {
    return reply.code(200).headers(JSON_HEADERS).send(String(text))
  }
  const refusal = exchange.chargeLong(text)
  if (refusal !== undefined) {
    unsettled?.settlements.settle(unsettled.settlement, 'rollback')
    throw managementRefusal(refusal)
  }
  exchange.answerParts({ ...takeOver(reply), ...JSON_HEADERS }, text, unsettled)
  return reply
}

/**
 * Reads bodies of any type as bytes. {@link jsonBody} validates them, so that errors have the
 * envelope.
 */
export function takeBodiesAsBytes(app: FastifyInstance, admission: OperatorAdmission, maxBodyBytes: number): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, parsed) => admission.readBody(request, maxBodyBytes, parsed))
}

/** The parameters of an agent, in a call of the tool `agent_query`. */
const FREE_FORM = ['arguments', 'params']

/**
 * Returns the parsed body of a request.
 * @throws ManagementError MEDIA_TYPE_UNSUPPORTED, BODY_INVALID
 */
export async function jsonBody(
  request: FastifyRequest<{ Body: Buffer | null | undefined }>,
  exchange: ManagementExchange,
): Promise<unknown> {
  if (jsonHeadersProblem(request.headers) !== undefined) throw unsupportedMediaType()
  const body = request.body ?? new Uint8Array(0)
  const text = decodeText(body)
  if (text === undefined) throw new ManagementError('BODY_INVALID', 'the body is not UTF-8; send JSON in UTF-8')
  const steps = parseJsonInSteps(text, { freeForm: FREE_FORM })
  const parsed = body.byteLength > LARGE_BODY_BYTES ? await exchange.inTurns(steps) : allSteps(steps)
  if ('value' in parsed) return parsed.value
  throw new ManagementError('BODY_INVALID', `the body is ${parsed.problem}`)
}

/** Converts Fastify's own error for a body into a ManagementError; returns other errors unchanged. */
export function bodyError(error: unknown): unknown {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? unsupportedMediaType() : error
}

function unsupportedMediaType(): ManagementError {
  return new ManagementError(
    'MEDIA_TYPE_UNSUPPORTED',
    'Content-Type must be application/json (charset utf-8), without Content-Encoding',
  )
}

/** Returns the query string of a request, undecoded. */
export function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}
