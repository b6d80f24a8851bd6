import { LONG_TEXT_BYTES, TextParts } from '@signalbox/http-kit'
import type { Unsettled } from '@signalbox/http-kit'
import { takeOver } from '@signalbox/http-kit/fastify'
import type { FastifyReply } from 'fastify'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import { managementRefusal } from './access/management-exchange.ts'
import type { ManagementExchange } from './access/management-exchange.ts'
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
