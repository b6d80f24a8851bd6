import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type { Call, HttpRequest, HttpResponse, JsonRpcError, Route, Steps, Surface } from '@signalbox/http-kit'
import type { RequestHead } from '@signalbox/http-kit/internal'
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
import type { RestRequest } from './rest-request.ts'
import { REST_PATHS } from './rest-resource.ts'
import type { RestResource } from './rest-resource.ts'

/** The parts of the gateway that the binding uses. */
interface RestParts {
  readonly surface: Surface
  readonly broker: Broker
  readonly gateway: Gateway
  readonly cards: Pick<Cards, 'extended'>
  readonly maxBodyBytes: number
  readonly onFinished: ((event: A2aRequestEvent) => void) | undefined
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
    const { surface, cards, onFinished } = this.#parts
    const { operations } = resource
    const [first = 'get'] = operations.values()
    const operation = operations.get(request.method ?? '')
    const native = { v03: false, version: requestedVersion(request), cards }
    const exchange = new RestExchange(request, response, headers, onFinished, native, METHODS[operation ?? first])
    surface.serve(exchange, operation === undefined ? [...operations.keys()] : this.#route(resource, operation))
  }

  #route(resource: RestResource, operation: Operation): Route<RestExchange, RestRequest> {
    const { gateway, maxBodyBytes } = this.#parts
    const { agentId, members } = resource
    const read = (call: Call<RestExchange>, body: Uint8Array | undefined): Steps<RestRequest> => {
      this.#assertServed(call, agentId)
      const { url = '' } = call.exchange.request
      return restRequest(operation, { ...queryMembers(operation, queryOf(url)), ...members }, body)
    }
    return {
      accept: (call) => {
        const { exchange } = call
        const { headers, method } = exchange.request
        if (method !== 'POST') return undefined
        const problem = hasBody(exchange.request) ? jsonHeadersProblem(headers, JSON_TYPES) : undefined
        if (problem !== undefined) exchange.failHeaders(problem)
        // A caller that may not call the agent sends no large body.
        else if (Number(headers['content-length'] ?? 0) > LARGE_BODY_BYTES) this.#assertServed(call, agentId)
        return maxBodyBytes
      },
      read,
      run: (call, given = allSteps(read(call, undefined))) => {
        const { exchange, caller } = call
        const { body, params } = given
        const timeoutMs = nativeTimeoutMs(exchange.request.headers, params)
        const asked = { body, timeoutMs, operation, params }
        return METHODS[operation].streams
          ? gateway.stream(exchange, caller, agentId, { ...asked, protocol: REST_STREAM })
          : gateway.call(exchange, caller, agentId, { ...asked, protocol: REST_CALL })
      },
    }
  }

  /** @throws JsonRpcError for a call that its version or the policy does not allow */
  #assertServed({ exchange, caller }: Call<RestExchange>, agentId: string): void {
    const { official, head, request } = exchange
    const problem = official && versionProblem(official, head?.version ?? '')
    if (problem !== undefined) throw problem
    assertCallable(this.#parts.broker, caller, agentId, request.headers)
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

const NO_MEMBERS = encodeText('{}')

/** One request of the HTTP+JSON binding, and its one answer. */
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
    this.template = `/a2a/{agent_id}${REST_PATHS[method.operation]}`
  }

  override *succeed(id: string, result: Uint8Array, headers?: OutgoingHttpHeaders): Steps<void> {
    // Agents answer `null` or an object without members.
    yield* super.succeed(id, this.#method.operation === 'push-delete' ? NO_MEMBERS : result, headers)
  }

  protected override resultFrame(): readonly [string, string] {
    return ['', '']
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
