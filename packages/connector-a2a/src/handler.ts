import type { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { ConnectionCaller, HttpRequest, HttpResponse, JsonRpcMessage, Steps } from '@signalbox/http-kit'
import type { Admitted } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'
import {
  Endpoint,
  failureHook,
  InFlight,
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  MAX_JSON_KEYS,
  refuseBody,
  scanJsonRpc,
} from '@signalbox/http-kit/internal'
import { AgentConnections, isAgentId } from '@signalbox/registry'

import { A2aExchange } from './a2a-exchange.ts'
import { KEY_SET_PATH } from './cards/card-keys.ts'
import { CARD_PATH, Cards } from './cards/cards.ts'
import { OWN_STREAM } from './gateway/call-protocol.ts'
import { assertCallable, methodLabel, readCall, streamRequest } from './gateway/call.ts'
import { Gateway } from './gateway/gateway.ts'
import type { A2aRequestEvent, AgentLookup, ResolvedA2aOptions } from './options.ts'
import { callPath, encodedTail, pathOf, requestedVersion } from './request-path.ts'
import type { AgentRequests } from './requests/agent-requests.ts'
import { RestBinding } from './rest/rest-binding.ts'
import { restResource } from './rest/rest-resource.ts'
import type { StreamLimits } from './stream/limits.ts'
import { NodeBudget } from './stream/link/node-budget.ts'
import { TaskOwners } from './subscriber/instances/instance-calls.ts'
import { TaskIsolation } from './subscriber/isolation/task-isolation.ts'
import { TaskRecords } from './subscriber/isolation/task-records.ts'
import { VirtualSubscribers } from './subscriber/virtual-subscribers.ts'

/** The broker, registry and transport that the gateway uses. */
export interface A2aDependencies {
  readonly broker: Broker
  /** The handle for the reserved channels. */
  readonly system: BrokerHandle
  readonly registry: AgentLookup
  readonly requests: AgentRequests
}

const BASE = '/a2a'
const BASE_SEGMENTS = 1
const STREAM = '/stream'

/** The endpoint of the agent gateway. It serves every registered agent from its creation on. */
export class A2aEndpoint {
  readonly gateway: Gateway
  readonly subscribers: VirtualSubscribers
  readonly cards: Cards
  readonly #options: ResolvedA2aOptions
  readonly #broker: Broker
  readonly #registry: AgentLookup
  readonly #endpoint: Endpoint
  readonly #rest: RestBinding
  readonly #stop = new AbortController()
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined = undefined
  #closed: Promise<void> | undefined

  constructor({ broker, system, registry, requests }: A2aDependencies, options: ResolvedA2aOptions) {
    const { hooks, bindHost, agentMaxResponseBytes, agentCa, agentProxyUrl, addressPolicy } = options
    this.#options = options
    this.#broker = broker
    this.#registry = registry
    this.#endpoint = new Endpoint({
      authenticator: options.authenticator,
      trustedOrigins: options.trustedOrigins,
      originsSetting: 'CONNECTORSA2_A_TRUSTED_ORIGINS',
      bindHost,
      frontDoor: options.frontDoor,
      failed: failureHook(hooks),
    })
    const failed = (error: unknown, request?: HttpRequest): void => this.#endpoint.report(error, request)
    if (hooks.requestFinished !== undefined) {
      this.#onFinished = (event) => {
        try {
          hooks.requestFinished?.(event)
        } catch {}
      }
    }
    this.cards = new Cards({
      platform: options.platform,
      publicUrl: options.publicUrl,
      keys: options.cardKeys,
      bearer: options.authenticator.anonymous !== true,
      native: options.native === 'auto',
      registered: (agentId) => registry.get(agentId),
    })
    const streamLimits: StreamLimits = { ...options.streamLimits, maxEventBytes: agentMaxResponseBytes }
    this.gateway = new Gateway({
      broker,
      system,
      registry,
      requests,
      streamLimits,
      pipe: { idleMs: options.maxSseIdleSeconds * 1000, keepAliveMs: options.keepAliveMs },
      failed,
      onFinished: this.#onFinished,
    })
    this.#rest = new RestBinding({
      endpoint: this.#endpoint,
      broker,
      gateway: this.gateway,
      cards: this.cards,
      maxBodyBytes: options.maxBodyBytes,
      onFinished: this.#onFinished,
    })
    this.subscribers = new VirtualSubscribers(
      registry,
      {
        system,
        authorization: registry.authorization,
        maxResponseBytes: agentMaxResponseBytes,
        maxConcurrency: options.agentMaxConcurrency,
        heldBytes: (account) => this.#endpoint.heldBytes(account),
        replies: requests.replies,
        streamLimits,
        streamBudget: new NodeBudget(options.streamBudgetBytes),
        owners: new TaskOwners(),
        isolation: isolationOf(system, options.taskIsolation),
        inFlight: new InFlight(),
        calls: new Set(),
        stopped: this.#stop.signal,
        failed,
      },
      new AgentConnections({
        tlsSkipVerify: options.agentTlsSkipVerify,
        addressPolicy,
        ...(agentCa === undefined ? {} : { ca: agentCa }),
        ...(agentProxyUrl === undefined ? {} : { proxyUrl: agentProxyUrl }),
      }),
    )
  }

  handle(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const path = pathOf(request)
    if (path === CARD_PATH) this.rootCard(request, response, headers)
    else if (path === KEY_SET_PATH && this.#options.cardKeys !== undefined) this.keySet(request, response, headers)
    else if (path === BASE) this.handlePath('', '', request, response, headers)
    else if (path.startsWith(`${BASE}/`)) {
      const encoded = encodedTail(request, BASE_SEGMENTS)
      this.handlePath(path.slice(BASE.length + 1), encoded, request, response, headers)
    } else notFound(request, response, headers)
  }

  /**
   * Answers a request below `/a2a/`.
   * @param path The path below `/a2a/`, decoded
   * @param encoded The same path as the client sent it
   */
  handlePath(
    path: string,
    encoded: string,
    request: HttpRequest,
    response: HttpResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    const isNative = this.#options.native === 'auto'
    const call = callPath(path, isNative)
    const resource = isNative && call === undefined ? restResource(encoded) : undefined
    // Only clients that send calls append a slash.
    if (call !== undefined && (request.method === 'POST' || !path.endsWith('/'))) {
      const native = isNative ? { v03: call.v03, version: requestedVersion(request), cards: this.cards } : undefined
      const exchange = new A2aExchange(request, response, headers, this.#onFinished, native)
      this.#admit('POST', exchange, (_exchange, caller) => this.#post(exchange, caller, call.agentId))
    } else if (resource !== undefined) {
      this.#rest.serve(resource, request, response, headers)
    } else if (path === CARD_PATH.slice(1)) {
      this.#contain(response, () => this.cards.lostId(request, response, headers))
    } else if (path.endsWith(CARD_PATH)) {
      this.#card(path.slice(0, -CARD_PATH.length), request, response, headers)
    } else if (path.endsWith(STREAM) && path.indexOf('/') === path.length - STREAM.length) {
      this.#admit('GET', new A2aExchange(request, response, headers, this.#onFinished), (exchange, caller) =>
        this.#getStream(exchange, caller, path.slice(0, -STREAM.length)),
      )
    } else {
      notFound(request, response, headers)
    }
  }

  /** Checks the method before the caller (A1). */
  #admit(method: string, exchange: A2aExchange, admitted: Admitted<A2aExchange>): void {
    if (exchange.request.method === method) this.#endpoint.admit(exchange, admitted)
    else exchange.notAllowed(method)
  }

  #post(exchange: A2aExchange, caller: ConnectionCaller, agentId: string): void {
    const problem = jsonHeadersProblem(exchange.request.headers)
    if (problem === undefined) {
      this.#endpoint.readBody(exchange, this.#options.maxBodyBytes, (_exchange, body) =>
        this.#message(exchange, caller, agentId, body),
      )
    } else exchange.failHeaders(problem)
  }

  #message(exchange: A2aExchange, caller: ConnectionCaller, agentId: string, body: Buffer): void | Promise<void> {
    if (body.byteLength > LARGE_BODY_BYTES) {
      return exchange
        .inTurns(this.#large(exchange, caller, agentId, body))
        .then((message) => this.#dispatch(exchange, caller, agentId, body, message))
        .catch((error: unknown) => fail(exchange, error))
    }
    try {
      return this.#dispatch(exchange, caller, agentId, body, parseJsonRpc(body, { maxKeys: MAX_JSON_KEYS }))
    } catch (error) {
      fail(exchange, error)
    }
  }

  /** Reads a large message. A caller that may not call the agent causes no dear work. */
  *#large(exchange: A2aExchange, caller: ConnectionCaller, agentId: string, body: Buffer): Steps<JsonRpcMessage> {
    const scanned = yield* scanJsonRpc(body, { maxKeys: MAX_JSON_KEYS })
    exchange.id = scanned.id
    assertCallable(this.#broker, caller, agentId, exchange.request.headers)
    yield
    return yield* scanned.parse()
  }

  #dispatch(
    exchange: A2aExchange,
    caller: ConnectionCaller,
    agentId: string,
    body: Buffer,
    message: JsonRpcMessage,
  ): Promise<void> {
    if (message.kind === 'response') {
      throw new JsonRpcError(
        JSON_RPC_CODES.INVALID_REQUEST,
        'invalid request: the message is a response; send a request or a notification',
      )
    }
    if (message.kind === 'request') exchange.id = message.id
    // Without official calls every notification is the dialect's.
    if (message.kind === 'request' || exchange.head !== undefined) exchange.recognize(message.method)
    const { official } = exchange
    exchange.method = methodLabel(message.method, official)
    assertCallable(this.#broker, caller, agentId, exchange.request.headers)
    const { gateway } = this
    if (message.kind === 'notification' && official === undefined) {
      return gateway.notify(exchange, caller, agentId, body, message)
    }
    const call = readCall(exchange.request.headers, body, message, official)
    return (official?.streams ?? message.method === 'message/stream')
      ? gateway.stream(exchange, caller, agentId, call)
      : gateway.call(exchange, caller, agentId, call)
  }

  #getStream(exchange: A2aExchange, caller: ConnectionCaller, agentId: string): void | Promise<void> {
    exchange.method = 'message/stream'
    try {
      assertCallable(this.#broker, caller, agentId, exchange.request.headers)
      const { url = '' } = exchange.request
      const mark = url.indexOf('?')
      const call = { ...streamRequest(mark === -1 ? '' : url.slice(mark + 1)), protocol: OWN_STREAM }
      return this.gateway.stream(exchange, caller, agentId, call)
    } catch (error) {
      if (!(error instanceof JsonRpcError)) throw error
      exchange.fail(error)
    }
  }

  #card(agentId: string, request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const known = this.#registry.get(agentId)
    if (known !== undefined || !isAgentId(agentId)) {
      this.#contain(response, () => this.cards.agent(known, request, response, headers))
      return
    }
    this.#registry.find(agentId).then(
      (card) => this.#contain(response, () => this.cards.agent(card, request, response, headers)),
      (error: unknown) => {
        this.#endpoint.report(error)
        this.#contain(response, () =>
          refuseBody(request, response, 503, { ...headers, 'Content-Type': TEXT }, 'the registry is not available\n'),
        )
      },
    )
  }

  /** Answers at the root of the host: with the card of the root agent, or else with the platform's own. */
  rootCard(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const { rootAgentId } = this.#options
    const agent = rootAgentId === undefined ? undefined : this.#registry.get(rootAgentId)
    this.#contain(response, () => {
      if (agent === undefined) this.cards.platform(request, response, headers)
      else this.cards.agent(agent, request, response, headers)
    })
  }

  keySet(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    this.#contain(response, () => this.cards.keySet(request, response, headers))
  }

  /** Catches the errors of card routes: they are public, so no Endpoint does it. */
  #contain(response: HttpResponse, answer: () => void): void {
    try {
      answer()
    } catch (error) {
      this.#endpoint.report(error)
      response.destroy()
    }
  }

  close(graceMs: number): Promise<void> {
    this.#endpoint.close()
    this.#closed ??= (async () => {
      const deadline = performance.now() + graceMs
      await this.gateway.close(graceMs)
      await this.subscribers.close(Math.max(deadline - performance.now(), 0), () => this.#stop.abort())
    })()
    return this.#closed
  }
}

/** Answers with a JSON-RPC error. @throws any other error */
function fail(exchange: A2aExchange, error: unknown): void {
  if (!(error instanceof JsonRpcError)) throw error
  exchange.fail(error, error.id ?? exchange.id)
}

function isolationOf(system: BrokerHandle, mode: ResolvedA2aOptions['taskIsolation']): TaskIsolation | undefined {
  return mode === 'off' ? undefined : new TaskIsolation(new TaskRecords(system), mode === 'strict')
}

const TEXT = 'text/plain; charset=utf-8'

function notFound(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
  refuseBody(request, response, 404, { ...headers, 'Content-Type': TEXT }, '404 page not found\n')
}
