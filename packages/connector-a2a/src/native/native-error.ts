import type { OutgoingHttpHeaders } from 'node:http'

import { JsonRpcError } from '@signalbox/http-kit'
import type { JsonRpcErrorOptions } from '@signalbox/http-kit'

import { errorDetails } from './error-info.ts'
import type { ErrorDetails } from './error-info.ts'

const OWN_CHALLENGE = 'Bearer realm="signalbox"'

interface NativeErrorOptions extends ErrorDetails, Omit<JsonRpcErrorOptions, 'data'> {
  /** The header WWW-Authenticate of an error with status 401. @default the gateway's own */
  readonly challenge?: string
}

/** An error of the gateway for a client that speaks an official version of A2A. */
export class NativeError extends JsonRpcError {
  /** The condition; clients decide by it. */
  readonly reason: string
  /** The headers of the answer. */
  readonly headers: OutgoingHttpHeaders

  constructor(
    code: number,
    reason: string,
    message: string,
    { metadata, retryAfterSeconds, challenge = OWN_CHALLENGE, ...options }: NativeErrorOptions = {},
  ) {
    super(code, message, {
      ...options,
      data: errorDetails(reason, { retryAfterSeconds, ...(metadata === undefined ? {} : { metadata }) }),
    })
    this.reason = reason
    this.headers = {
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
      ...(options.status === 401 ? { 'WWW-Authenticate': challenge } : {}),
    }
  }
}
