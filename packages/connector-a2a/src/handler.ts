import type { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { Identity, JsonRpcMessage, OriginPolicy } from '@signalbox/http-kit'
import {
  authenticate,
  AuthenticationError,
  authenticationFailed,
  handleOf,
  InFlight,
  internalError,
  JSON_RPC_CODES,
  jsonHeadersProblem,
  JsonRpcError,
  originPolicy,
  originRefused,
  parseJsonRpc,
  readBody,
  readRefusedId,
  refuseBody,
} from '@signalbox/http-kit'
import type { AgentRequests } from '@signalbox/registry'
import { isAgentId } from '@signalbox/registry'

import type { AgentDirectory } from './agent-directory.ts'
import { CARD_PATH, Cards } from './cards.ts'
import { Exchange } from './exchange.ts'
import { forbidden } from './gateway/forbidden.ts'
import { assertAgentId, Gateway } from './gateway/gateway.ts'
import { methodLabel } from './gateway/method-label.ts'
import { streamRequest } from './gateway/stream-request.ts'
import { readTimeoutMs } from './gateway/timeout.ts'
import type { A2aOptions, A2aRequestEvent, ResolvedOptions } from './options.ts'
import { resolveOptions } from './options.ts'
import type { StreamLimits } from './stream/index.ts'
import { NodeBudget } from './stream/index.ts'
import { AgentConnections } from './subscriber/agent-connections.ts'
import { VirtualSubscribers } from './subscriber/virtual-subscribers.ts'

/** What the gateway works with. */
export interface A2aRooms {
  readonly broker: Broker
  /** The handle for the broker's own channels. */
  readonly system: BrokerHandle
  readonly registry: AgentDirectory
  readonly requests: AgentRequests
}

/** The gateway for node's HTTP server, and for any framework that can hand over request and response. */
export interface A2aHandler {
  /**
   * Takes over a request to `/a2a/…` or to the platform's card, told by its URL; any other path is answered with 404 in
   * plain text. `headers` go into the answer beside its own, such as CORS headers that somebody set.
   */
  (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void
  /** As the function itself, for a host that routes: `path` is what follows `/a2a/`, decoded. */
  handlePath(path: string, request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void
  /** The platform's card. */
  handlePlatformCard(request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void
  /** Calls and streams that are under way for an agent from this node (R9). */
  inFlight(agentId: string): number
  /** Streams that are open to clients of this node. */
  activeStreams(): number
  /**
   * Ends politely: no new requests, streams end, calls have `graceMs` to finish, then agents are no longer served from
   * here. Idempotent. @default graceMs 5000
   */
  close(graceMs?: number): Promise<void>
}

/**
 * Makes the agent gateway (A1–A14), and begins to serve every registered agent.
 * @throws RangeError for an option that is out of range
 */
export function createA2aHandler(rooms: A2aRooms, options: A2aOptions = {}): A2aHandler {
  const endpoint = new A2aEndpoint(rooms, resolveOptions(options, rooms.broker.engine.limits.maxMessageBytes))
  return Object.assign(
    (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void =>
      endpoint.handle(request, response, headers),
    {
      handlePath: (
        path: string,
        request: IncomingMessage,
        response: ServerResponse,
        headers?: OutgoingHttpHeaders,
      ): void => endpoint.handlePath(path, request, response, headers),
      handlePlatformCard: (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void =>
        endpoint.cards.platform(request, response, headers),
      inFlight: (agentId: string) => endpoint.subscribers.inFlight(agentId),
      activeStreams: () => endpoint.gateway.activeStreams,
      close: (graceMs?: number) => endpoint.close(graceMs),
    },
  )
}

const BASE = '/a2a'
const STREAM = '/stream'

class A2aEndpoint {
  readonly gateway: Gateway
  readonly subscribers: VirtualSubscribers
  readonly cards: Cards
  readonly #options: ResolvedOptions
  readonly #broker: Broker
  readonly #registry: AgentDirectory
  readonly #originAllowed: OriginPolicy
  readonly #stop = new AbortController()
  readonly #failed: (error: unknown) => void
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined = undefined
  #closed: Promise<void> | undefined

  constructor({ broker, system, registry, requests }: A2aRooms, options: ResolvedOptions) {
    const { hooks, bindHost, agentMaxResponseBytes, agentCa, agentProxyUrl, addressPolicy } = options
    this.#options = options
    this.#broker = broker
    this.#registry = registry
    this.#originAllowed = originPolicy(options.trustedOrigins, bindHost === undefined ? {} : { bindHost })
    const failed = (error: unknown): void => {
      try {
        hooks.failed?.(error)
      } catch {}
    }
    this.#failed = failed
    if (hooks.requestFinished !== undefined) {
      this.#onFinished = (event) => {
        try {
          hooks.requestFinished?.(event)
        } catch {}
      }
    }
    this.cards = new Cards(options.platform)
    const streamLimits: StreamLimits = { ...options.streamLimits, maxEventBytes: agentMaxResponseBytes }
    this.gateway = new Gateway({
      broker,
      system,
      registry,
      requests,
      streamLimits,
      pipe: { idleMs: options.maxSseIdleSeconds * 1000, keepAliveMs: options.keepAliveMs },
      failed,
    })
    this.subscribers = new VirtualSubscribers(
      registry,
      {
        system,
        maxResponseBytes: agentMaxResponseBytes,
        maxConcurrency: options.agentMaxConcurrency,
        streamLimits,
        streamBudget: new NodeBudget(options.streamBudgetBytes),
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

  handle(request: IncomingMessage, response: ServerResponse, headers: OutgoingHttpHeaders | undefined): void {
    const path = pathOf(request)
    if (path === CARD_PATH) this.cards.platform(request, response, headers)
    else if (path === BASE) this.handlePath('', request, response, headers)
    else if (path.startsWith(`${BASE}/`)) this.handlePath(path.slice(BASE.length + 1), request, response, headers)
    else notFound(request, response, headers)
  }

  handlePath(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    if (!path.includes('/')) {
      this.#admit('POST', new Exchange(request, response, headers, this.#onFinished), (exchange, identity) =>
        this.#post(exchange, identity, path),
      )
    } else if (path.endsWith(CARD_PATH)) {
      this.#card(path.slice(0, -CARD_PATH.length), request, response, headers)
    } else if (path.endsWith(STREAM) && path.indexOf('/') === path.length - STREAM.length) {
      this.#admit('GET', new Exchange(request, response, headers, this.#onFinished), (exchange, identity) =>
        this.#getStream(exchange, identity, path.slice(0, -STREAM.length)),
      )
    } else {
      notFound(request, response, headers)
    }
  }

  /** S5: the method (A1), the origin, then authentication; the body after that. */
  #admit(method: string, exchange: Exchange, admitted: (exchange: Exchange, identity: Identity) => void): void {
    const { request, response } = exchange
    if (request.method !== method) {
      exchange.notAllowed(method)
    } else if (!this.#originAllowed(request.headers.origin)) {
      exchange.refuse(originRefused())
    } else if (this.#closed !== undefined) {
      response.shouldKeepAlive = false
      exchange.refuse(unavailable('the server is shutting down; try again'))
    } else {
      authenticate(
        this.#options.authenticator,
        request,
        (identity) => admitted(exchange, identity),
        (cause) => this.#unauthenticated(exchange, cause),
      )
    }
  }

  #unauthenticated(exchange: Exchange, cause: unknown): void {
    const expected = cause instanceof AuthenticationError
    if (!expected) this.#failed(cause)
    readRefusedId(exchange.request, (id, bodyRead) => {
      const error = expected ? authenticationFailed(id) : internalError(cause, id)
      if (bodyRead) exchange.fail(error)
      else exchange.refuse(error)
    })
  }

  #post(exchange: Exchange, identity: Identity, agentId: string): void {
    const { request } = exchange
    const problem = jsonHeadersProblem(request.headers)
    if (problem) {
      exchange.refuse(problem)
      return
    }
    readBody(request, this.#options.maxBodyBytes, (tooLarge, body) => {
      if (tooLarge) exchange.refuse(tooLarge)
      else this.#message(exchange, identity, agentId, body)
    })
  }

  #message(exchange: Exchange, identity: Identity, agentId: string, body: Buffer): void {
    let message: JsonRpcMessage | undefined
    try {
      message = parseJsonRpc(body)
      this.#dispatch(exchange, identity, agentId, body, message)
    } catch (error) {
      this.#fail(exchange, error, message?.kind === 'request' ? message.id : undefined)
    }
  }

  #dispatch(exchange: Exchange, identity: Identity, agentId: string, body: Buffer, message: JsonRpcMessage): void {
    if (message.kind === 'response') {
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, 'invalid request: a response was sent, not a request')
    }
    exchange.method = methodLabel(message.method)
    assertAgentId(agentId)
    this.#authorize(exchange, identity, agentId)
    const { gateway } = this
    if (message.kind === 'notification') {
      void gateway.notify(exchange, identity, agentId, body, message)
    } else {
      const { id, params } = message
      const call = { body, id, timeoutMs: readTimeoutMs(params) }
      if (message.method === 'message/stream') void gateway.stream(exchange, identity, agentId, call)
      else void gateway.call(exchange, identity, agentId, call)
    }
  }

  /** S4: whether there is such an agent is not told to those who may not call it. @throws JsonRpcError -32011 */
  #authorize({ request }: Exchange, identity: Identity, agentId: string): void {
    try {
      handleOf(this.#broker, identity, request).authorize('call', 'agents', agentId)
    } catch (error) {
      if (!isBrokerError(error, 'FORBIDDEN')) throw error
      throw forbidden(error)
    }
  }

  #getStream(exchange: Exchange, identity: Identity, agentId: string): void {
    exchange.method = 'message/stream'
    try {
      assertAgentId(agentId)
      this.#authorize(exchange, identity, agentId)
      const { url = '' } = exchange.request
      const mark = url.indexOf('?')
      const call = streamRequest(mark === -1 ? '' : url.slice(mark + 1))
      void this.gateway.stream(exchange, identity, agentId, call)
    } catch (error) {
      this.#fail(exchange, error, undefined)
    }
  }

  #card(
    agentId: string,
    request: IncomingMessage,
    response: ServerResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    const known = this.#registry.get(agentId)
    if (known !== undefined || !isAgentId(agentId)) {
      this.cards.agent(known, request, response, headers)
      return
    }
    this.#registry.find(agentId).then(
      (card) => this.cards.agent(card, request, response, headers),
      (error: unknown) => {
        this.#failed(error)
        refuseBody(request, response, 503, { ...headers, 'Content-Type': TEXT }, 'the registry is not available\n')
      },
    )
  }

  #fail(exchange: Exchange, error: unknown, id: string | undefined): void {
    if (!(error instanceof JsonRpcError)) this.#failed(error)
    const told = error instanceof JsonRpcError ? error : internalError(error)
    exchange.fail(told, told.id ?? id)
  }

  close(graceMs = 5000): Promise<void> {
    this.#closed ??= (async () => {
      const deadline = performance.now() + graceMs
      await this.gateway.close(graceMs)
      await this.subscribers.close(Math.max(deadline - performance.now(), 0), () => this.#stop.abort())
    })()
    return this.#closed
  }
}

const TEXT = 'text/plain; charset=utf-8'

function notFound(request: IncomingMessage, response: ServerResponse, headers: OutgoingHttpHeaders | undefined): void {
  refuseBody(request, response, 404, { ...headers, 'Content-Type': TEXT }, '404 page not found\n')
}

/** The path of a request, decoded; one that cannot be is left as it is, and found nowhere. */
function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  const path = mark === -1 ? url : url.slice(0, mark)
  if (!path.includes('%')) return path
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function unavailable(reason: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, reason, { status: 503 })
}
