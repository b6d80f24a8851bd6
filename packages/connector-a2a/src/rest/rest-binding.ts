import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import type { ConnectionCaller, Endpoint } from '@signalbox/http-kit'
import { allSteps, jsonHeadersProblem, JsonRpcError, LARGE_BODY_BYTES } from '@signalbox/http-kit'

import type { Cards } from '../cards/cards.ts'
import { assertCallable } from '../gateway/assert-callable.ts'
import { nativeTimeoutMs } from '../gateway/call.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { versionProblem } from '../native/speech-problems.ts'
import { spokenVersion } from '../native/spoken-version.ts'
import type { A2aRequestEvent } from '../options.ts'
import type { Operation } from '../wire/index.ts'
import { METHODS } from '../wire/index.ts'
import { A2A_JSON, RestExchange } from './rest-exchange.ts'
import { REST_CALL, REST_STREAM } from './rest-form.ts'
import { queryMembers } from './rest-query.ts'
import { restRequest } from './rest-request.ts'
import type { RestResource } from './rest-resource.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The parts of the gateway that the binding uses. */
export interface RestParts {
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
    const native = { v03: false, version: spokenVersion(request), cards }
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
    const { speech, spoken } = exchange
    const problem = speech && versionProblem(speech, spoken?.version ?? '')
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
        ? gateway.stream(exchange, caller, agentId, { body: given.body, timeoutMs, form: REST_STREAM })
        : gateway.call(exchange, caller, agentId, { body: given.body, timeoutMs, form: REST_CALL }))
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
