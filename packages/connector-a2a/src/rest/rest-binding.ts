import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import type { ConnectionCaller, HttpRequest, HttpResponse } from '@signalbox/http-kit'
import type { Endpoint, RequestHead } from '@signalbox/http-kit/internal'
import { JsonRpcError } from '@signalbox/http-kit'
import { allSteps, isJsonObject, jsonHeadersProblem, LARGE_BODY_BYTES } from '@signalbox/http-kit/internal'

import type { ErrorAnswer, NativeParts } from '../a2a-exchange.ts'
import { A2aExchange } from '../a2a-exchange.ts'
import type { Cards } from '../cards/cards.ts'
import type { CallProtocol } from '../gateway/call-protocol.ts'
import { assertCallable, methodLabel, nativeTimeoutMs } from '../gateway/call.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { NativeError } from '../native/errors.ts'
import { nativeProtocol } from '../native/native-protocol.ts'
import { versionProblem } from '../native/official-call.ts'
import type { A2aRequestEvent } from '../options.ts'
import { requestedVersion } from '../request-path.ts'
import { REST_EVENTS } from '../stream/native-events.ts'
import type { A2aMethod, Operation } from '../wire/index.ts'
import { METHODS, parseForTranslation } from '../wire/index.ts'
import type { RestError } from './rest-error.ts'
import { agentRestError, restErrorText, restStatus } from './rest-error.ts'
import { queryMembers, restRequest } from './rest-request.ts'
import type { RestResource } from './rest-resource.ts'

/** The parts of the gateway that the binding uses. */
interface RestParts {
  readonly endpoint: Endpoint
  readonly broker: Broker
  readonly gateway: Gateway
  readonly cards: Pick<Cards, 'extended'>
  readonly maxBodyBytes: number
  readonly onFinished: ((event: A2aRequestEvent) => void) | undefined
}

/** An admitted request. */
interface RestCall {
  readonly exchange: RestExchange
  readonly caller: ConnectionCaller
  readonly operation: Operation
  readonly resource: RestResource
}

/** The media type of A2A 1.0. */
const A2A_JSON = 'application/a2a+json'
const JSON_TYPES = ['application/json', A2A_JSON]

/**
 * The HTTP+JSON binding of A2A 1.0. A request becomes the official JSON-RPC call that it means, and is forwarded as
 * such; only its exchange differs.
 */
export class RestBinding {
  readonly #parts: RestParts

  constructor(parts: RestParts) {
    this.#parts = parts
  }

  /** Answers a request for a resource. Checks the method before the caller. */
  serve(
    resource: RestResource,
    request: HttpRequest,
    response: HttpResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    const { endpoint, cards, onFinished } = this.#parts
    const { operations } = resource
    const [first = 'get'] = operations.values()
    const operation = operations.get(request.method ?? '')
    const native = { v03: false, version: requestedVersion(request), cards }
    const exchange = new RestExchange(request, response, headers, onFinished, native, METHODS[operation ?? first])
    if (operation === undefined) exchange.notAllowed([...operations.keys()].join(', '))
    else endpoint.admit(exchange, (_exchange, caller) => this.#read({ exchange, caller, operation, resource }))
  }

  #read(call: RestCall): void | Promise<void> {
    const { exchange } = call
    const { request } = exchange
    if (request.method !== 'POST') return this.#forward(call, undefined)
    const problem = hasBody(request) ? jsonHeadersProblem(request.headers, JSON_TYPES) : undefined
    if (problem !== undefined) return exchange.failHeaders(problem)
    const { endpoint, maxBodyBytes } = this.#parts
    // A caller that may not call the agent sends no large body.
    if (Number(request.headers['content-length'] ?? 0) > LARGE_BODY_BYTES) {
      const refusal = this.#refusal(call)
      if (refusal !== undefined) return exchange.fail(refusal)
    }
    return endpoint.readBody(exchange, maxBodyBytes, (_exchange, body) => this.#forward(call, body))
  }

  /** Returns the error for a call that its version or the policy does not allow. */
  #refusal({ exchange, caller, resource }: RestCall): JsonRpcError | undefined {
    const { official, head } = exchange
    const problem = official && versionProblem(official, head?.version ?? '')
    if (problem !== undefined) return problem
    try {
      assertCallable(this.#parts.broker, caller, resource.agentId, exchange.request.headers)
    } catch (error) {
      if (error instanceof JsonRpcError) return error
      throw error
    }
    return undefined
  }

  async #forward(call: RestCall, body: Uint8Array | undefined): Promise<void> {
    const { exchange, caller, operation, resource } = call
    const { agentId, members } = resource
    const { headers, url = '' } = exchange.request
    const { gateway } = this.#parts
    try {
      const refusal = this.#refusal(call)
      if (refusal !== undefined) throw refusal
      const steps = restRequest(operation, { ...queryMembers(operation, queryOf(url)), ...members }, body)
      const isLarge = body !== undefined && body.byteLength > LARGE_BODY_BYTES
      const given = isLarge ? await exchange.inTurns(steps) : allSteps(steps)
      const timeoutMs = nativeTimeoutMs(headers, given.params)
      await (METHODS[operation].streams
        ? gateway.stream(exchange, caller, agentId, { body: given.body, timeoutMs, protocol: REST_STREAM })
        : gateway.call(exchange, caller, agentId, { body: given.body, timeoutMs, protocol: REST_CALL }))
    } catch (error) {
      if (!(error instanceof JsonRpcError)) throw error
      exchange.fail(error)
    }
  }
}

function hasBody({ headers }: HttpRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function queryOf(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}

/** The protocol of calls of the HTTP+JSON binding: official calls of A2A 1.0, whose exchange writes the answers. */
const REST_CALL: CallProtocol = nativeProtocol('1.0')

/** The protocol of streams of the HTTP+JSON binding. */
const REST_STREAM: CallProtocol = {
  ...REST_CALL,
  wire: { version: '1.0', answer: 'rest' },
  streamFailures: () => REST_EVENTS,
}

/** One request of the HTTP+JSON binding, and its one errorAnswer. */
class RestExchange extends A2aExchange {
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
    this.official = { version: '1.0', method, streams: method.streams }
    this.method = methodLabel('', this.official)
  }

  protected override resultText(_id: string, result: string): string {
    // Agents errorAnswer `null` or an object without members.
    return this.#method.operation === 'push-delete' ? '{}' : result
  }

  protected override agentErrorAnswer(_id: string, error: string): ErrorAnswer {
    const value = parseForTranslation(error)
    return errorAnswer(agentRestError(isJsonObject(value) ? value : {}))
  }

  protected override gatewayErrorAnswer(error: JsonRpcError): ErrorAnswer {
    const { code, message, status, data } = error
    return errorAnswer({
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

function errorAnswer(error: RestError): ErrorAnswer {
  return { status: restStatus(error), text: restErrorText(error) }
}
