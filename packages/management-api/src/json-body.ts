import type { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { allSteps, jsonHeadersProblem, LARGE_BODY_BYTES, parseJsonInSteps } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import type { ManagementExchange } from './access/management-exchange.ts'
import type { OperatorAdmission } from './access/operator-admission.ts'
import { ManagementError } from './errors.ts'

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
