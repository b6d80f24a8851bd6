import type { OutgoingHttpHeaders } from 'node:http'

import type { JsonRpcError, RequestHead } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit'

import type { ErrorAnswer, NativeParts } from '../a2a-exchange.ts'
import { A2aExchange } from '../a2a-exchange.ts'
import { methodLabel } from '../gateway/method-label.ts'
import { NativeError } from '../native/native-error.ts'
import type { A2aRequestEvent } from '../options.ts'
import type { A2aMethod } from '../wire/index.ts'
import { parseForTranslation } from '../wire/index.ts'
import type { RestError } from './rest-error.ts'
import { agentRestError, restErrorText, restStatus } from './rest-error.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The media type of A2A 1.0. */
export const A2A_JSON = 'application/a2a+json'

/** One request of the HTTP+JSON binding, and its one answer. */
export class RestExchange extends A2aExchange {
  readonly #method: A2aMethod

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((event: A2aRequestEvent) => void) | undefined,
    native: NativeParts,
    method: A2aMethod,
  ) {
    super(request, response, moreHeaders, onFinished, native)
    this.#method = method
    this.speech = { version: '1.0', method, streams: method.streams }
    this.method = methodLabel('', this.speech)
  }

  protected override resultText(_id: string, result: string): string {
    // Agents answer `null` or an object without members.
    return this.#method.operation === 'push-delete' ? '{}' : result
  }

  protected override agentErrorAnswer(_id: string, error: string): ErrorAnswer {
    const value = parseForTranslation(error)
    return answer(agentRestError(isJsonObject(value) ? value : {}))
  }

  protected override gatewayErrorAnswer(error: JsonRpcError): ErrorAnswer {
    const { code, message, status, data } = error
    return answer({
      code,
      message,
      status,
      ...(error instanceof NativeError ? { reason: error.reason } : {}),
      ...(Array.isArray(data) ? { details: data } : {}),
    })
  }

  /** The SDK for Go reads errors only as `application/json`. */
  protected override contentHeaders(): OutgoingHttpHeaders {
    const { headers, method } = this.request
    return {
      'Content-Type': headers.accept?.includes(A2A_JSON) === true ? A2A_JSON : 'application/json',
      ...(method === 'GET' ? { 'Cache-Control': 'no-store' } : {}),
    }
  }

  /** Answers at once: these requests have no id to repeat. */
  protected override withRequestHead(answerTo: (head: RequestHead) => void): void {
    answerTo({})
  }
}

function answer(error: RestError): ErrorAnswer {
  return { status: restStatus(error), text: restErrorText(error) }
}
