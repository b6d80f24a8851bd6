import type { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { jsonHeadersProblem } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ManagementError } from './errors.ts'

/** Takes bodies as they are: what they have to be is said in the envelope, by {@link jsonBody}. */
export function takeBodiesAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body))
}

/**
 * The JSON of a request's body.
 * @throws ManagementError MEDIA_TYPE_UNSUPPORTED, BODY_INVALID
 */
export function jsonBody(request: FastifyRequest<{ Body: Buffer | null | undefined }>): unknown {
  if (jsonHeadersProblem(request.headers) !== undefined) throw unsupportedMediaType()
  const text = decodeText(request.body ?? new Uint8Array(0))
  if (text === undefined) throw new ManagementError('BODY_INVALID', 'invalid body: it is not UTF-8')
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ManagementError('BODY_INVALID', 'invalid body: it is not JSON', {}, { cause: error })
  }
}

/** What Fastify itself refuses of a body, in our words; other errors as they are. */
export function bodyError(error: unknown, maxBodyBytes: number): unknown {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ManagementError('BODY_TOO_LARGE', `the body is larger than the limit of ${maxBodyBytes} bytes`, {
        limit: maxBodyBytes,
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return unsupportedMediaType()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ManagementError('BODY_INVALID', 'invalid body: it has not the length that Content-Length says')
    default:
      return error
  }
}

function unsupportedMediaType(): ManagementError {
  return new ManagementError(
    'MEDIA_TYPE_UNSUPPORTED',
    'Content-Type must be application/json (charset utf-8), without Content-Encoding',
  )
}
