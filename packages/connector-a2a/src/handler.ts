import type { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import { JSON_RPC_CODES, JsonRpcError, parseJsonRpc, Surface } from '@signalbox/http-kit'
import type {
  Call,
  ConnectionCaller,
  HttpRequest,
  HttpResponse,
  JsonRpcMessage,
  Route,
  Steps,
} from '@signalbox/http-kit'
import {
  InFlight,
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  MAX_JSON_KEYS,
  quietHook,
  refuseBody,
  scanJsonRpc,
} from '@signalbox/http-kit/internal'
import { AgentConnections, isAgentId } from '@signalbox/registry'

import { A2aExchange } from './a2a-exchange.ts'
import { KEY_SET_PATH } from './cards/card-keys.ts'
import { CARD_PATH, Cards } from './cards/cards.ts'
import { OWN_STREAM } from './gateway/call-protocol.ts'
import { assertCallable, methodLabel, readCall, streamRequest } from './gateway/call.ts'
import type { Call as AgentCall } from './gateway/call.ts'
import { Gateway } from './gateway/gateway.ts'
import { KeptAnswers } from './kept-answers.ts'
import type { A2aDependencies, A2aRequestEvent, AgentLookup, ResolvedA2aOptions } from './options.ts'
import { callPath, encodedTail, pathOf, requestedVersion } from './request-path.ts'
import { RestBinding } from './rest/rest-binding.ts'
import { restResource } from './rest/rest-resource.ts'
import { pushesFor } from './push/push-calls.ts'
import type { StreamLimits } from './stream/limits.ts'
import { NodeBudget } from './stream/link/node-budget.ts'
import { TaskOwners } from './subscriber/instances/instance-calls.ts'
import { TaskIsolation } from './subscriber/isolation/task-isolation.ts'
import { TaskRecords } from './subscriber/isolation/task-records.ts'
import { VirtualSubscribers } from './subscriber/virtual-subscribers.ts'

/** A message for an agent, and the body that the agent gets. */
interface A2aMessage {
  readonly body: Buffer
  readonly message: JsonRpcMessage
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
  readonly #surface: Surface
  readonly #rest: RestBinding
  readonly kept: KeptAnswers
  readonly #stop = new AbortController()
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined

  constructor(dependencies: A2aDependencies, options: ResolvedA2aOptions) {
    const { broker, system, registry, requests } = dependencies
    const { hooks, agentMaxResponseBytes, agentCa, agentProxyUrl, addressPolicy } = options
    this.#options = options
    this.#broker = broker
    this.#registry = registry
    this.#surface = new Surface({
      ...options,
      originsSetting: 'CONNECTORSA2_A_TRUSTED_ORIGINS',
      tracing: broker.tracing,
      drain: (graceMs) => this.gateway.close(graceMs),
      finish: (graceMs) => this.#finish(graceMs),
    })
    const { failed } = this.#surface
    this.#onFinished = quietHook(hooks.requestFinished?.bind(hooks))
    this.cards = new Cards({
      platform: options.platform,
      publicUrl: options.publicUrl,
      keys: options.cardKeys,
      bearer: options.authenticator.anonymous !== true,
      native: options.native === 'auto',
      registered: (agentId) => registry.get(agentId),
      pushes: (card) => options.push !== undefined && options.log !== 'off' && pushesFor(card),
    })
    const streamLimits: StreamLimits = { ...options.streamLimits, maxEventBytes: agentMaxResponseBytes }
    const records = new TaskRecords(system)
    this.kept = new KeptAnswers(
      { ...dependencies, records, streamLimits, failed, find: (agentId) => this.subscribers.find(agentId) },
      options,
    )
    const { inboxes } = this.kept
    this.gateway = new Gateway({
      broker,
      system,
      registry,
      requests,
      logged: this.kept.calls,
      push: this.kept.push,
      streamLimits,
      pipe: { idleMs: options.maxSseIdleSeconds * 1000, keepAliveMs: options.keepAliveMs },
      failed,
      onFinished: this.#onFinished,
    })
    this.#rest = new RestBinding({
      surface: this.#surface,
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
        tracing: broker.tracing,
        authorization: registry.authorization,
        maxResponseBytes: agentMaxResponseBytes,
        maxConcurrency: options.agentMaxConcurrency,
        heldBytes: (account) => this.#surface.heldBytes(account),
        replies: requests.replies,
        streamLimits,
        streamBudget: new NodeBudget(options.streamBudgetBytes),
        owners: new TaskOwners(),
        isolation: isolationOf(records, options.taskIsolation),
        runs: this.kept.runs,
        loggedTasks: this.kept.tasks,
        inbox: inboxes && (() => inboxes.answers),
        inFlight: new InFlight(),
        calls: new Set(),
        stopped: this.#stop.signal,
        failed,
      },
      new AgentConnections({
        tlsSkipVerify: options.agentTlsSkipVerify,
        addressPolicy,
        ca: agentCa,
        proxyUrl: agentProxyUrl,
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
      this.#surface.serve(exchange, request.method === 'POST' ? this.#call(call.agentId) : ['POST'])
    } else if (resource !== undefined) {
      this.#rest.serve(resource, request, response, headers)
    } else if (path === CARD_PATH.slice(1)) {
      this.#contain(response, () => this.cards.lostId(request, response, headers))
    } else if (path.endsWith(CARD_PATH)) {
      this.#card(path.slice(0, -CARD_PATH.length), request, response, headers)
    } else if (path.endsWith(STREAM) && path.indexOf('/') === path.length - STREAM.length) {
      const exchange = new A2aExchange(request, response, headers, this.#onFinished)
      const isGet = request.method === 'GET'
      this.#surface.serve(exchange, isGet ? this.#ownStream(path.slice(0, -STREAM.length)) : ['GET'])
    } else {
      notFound(request, response, headers)
    }
  }

  /** Returns the route of a JSON-RPC message for an agent. */
  #call(agentId: string): Route<A2aExchange, A2aMessage> {
    return {
      accept: ({ exchange }) => {
        const problem = jsonHeadersProblem(exchange.request.headers)
        if (problem === undefined) return this.#options.maxBodyBytes
        exchange.failHeaders(problem)
        return undefined
      },
      read: (call, body) => this.#parse(call, agentId, body),
      run: ({ exchange, caller }, input) => input && this.#dispatch(exchange, caller, agentId, input),
    }
  }

  *#parse({ exchange, caller }: Call<A2aExchange>, agentId: string, body: Buffer): Steps<A2aMessage> {
    const limits = { maxKeys: MAX_JSON_KEYS }
    if (body.byteLength <= LARGE_BODY_BYTES) return { body, message: parseJsonRpc(body, limits) }
    const scanned = yield* scanJsonRpc(body, limits)
    // A caller that may not call the agent causes no dear work.
    exchange.id = scanned.id
    assertCallable(this.#broker, caller, agentId, exchange.request.headers)
    yield
    return { body, message: yield* scanned.parse() }
  }

  #dispatch(
    exchange: A2aExchange,
    caller: ConnectionCaller,
    agentId: string,
    { body, message }: A2aMessage,
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

  /** Returns the route of a stream with the gateway's own events, whose message is in the query. */
  #ownStream(agentId: string): Route<A2aExchange> {
    return {
      run: ({ exchange, caller }) => {
        exchange.method = 'message/stream'
        assertCallable(this.#broker, caller, agentId, exchange.request.headers)
        const { url = '' } = exchange.request
        const mark = url.indexOf('?')
        const asked = streamRequest(mark === -1 ? '' : url.slice(mark + 1))
        const call: AgentCall = { ...asked, protocol: OWN_STREAM, operation: 'stream' }
        return this.gateway.stream(exchange, caller, agentId, call)
      },
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
        this.#surface.failed(error)
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

  /** Catches the errors of card routes: they are public, so the surface does not serve them. */
  #contain(response: HttpResponse, answer: () => void): void {
    try {
      answer()
    } catch (error) {
      this.#surface.failed(error)
      response.destroy()
    }
  }

  close(graceMs: number): Promise<void> {
    return this.#surface.close(graceMs)
  }

  async #finish(graceMs: number): Promise<void> {
    // Streams that agents opened meanwhile.
    this.gateway.streams.close()
    this.kept.leave()
    await this.subscribers.close(graceMs, () => this.#stop.abort())
    await this.kept.close()
  }
}

function isolationOf(records: TaskRecords, mode: ResolvedA2aOptions['taskIsolation']): TaskIsolation | undefined {
  return mode === 'off' ? undefined : new TaskIsolation(records, mode === 'strict')
}

const TEXT = 'text/plain; charset=utf-8'

function notFound(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
  refuseBody(request, response, 404, { ...headers, 'Content-Type': TEXT }, '404 page not found\n')
}
