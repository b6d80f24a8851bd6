import type { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { Identity, JsonRpcMessage, JsonRpcRequest, OriginPolicy } from '@signalbox/http-kit'
import {
  authenticate,
  AuthenticationError,
  authenticationFailed,
  handleOf,
  internalError,
  JSON_RPC_CODES,
  jsonHeadersProblem,
  JsonRpcError,
  MAX_JSON_KEYS,
  MCP_LOCAL_HOSTS,
  OpenStreams,
  originPolicy,
  originRefused,
  parseJsonRpc,
  readBody,
  readRefusedId,
  Settlements,
} from '@signalbox/http-kit'

import { callKey, Calls } from './calls.ts'
import { Exchange } from './exchange.ts'
import {
  readArguments,
  readCancelledId,
  readProgressToken,
  readProtocolVersion,
  readTool,
  refuseCursor,
} from './methods.ts'
import type { McpOptions, McpOutcome, ResolvedOptions } from './options.ts'
import { resolveOptions } from './options.ts'
import { newSessionId } from './session.ts'
import type { CallEnvironment } from './tool-call.ts'
import { ToolCall } from './tool-call.ts'
import { createTools } from './tools/index.ts'
import type { Tool } from './tools/tool.ts'
import { initializeResult } from './wire/revision.ts'
import { negotiate } from './wire/revisions.ts'

/** The MCP endpoint as a function for node's HTTP server, and for any framework that can hand over request and response. */
export interface McpHandler {
  /**
   * Takes over one request, whatever its path: routing is the host's. `headers` go into the answer beside its own, such
   * as CORS headers that somebody set.
   */
  (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void
  /** GET streams that are open now. */
  openStreams(): number
  /**
   * Ends politely: no new calls, waiting receives end with an empty result, streams end, other calls have `graceMs` to
   * finish, messages that were handed over are settled. Idempotent. @default graceMs 5000
   */
  close(graceMs?: number): Promise<void>
}

/** Makes the endpoint for `POST`, `GET` and `DELETE /mcp` (M1–M14) over a broker. */
export function createMcpHandler(broker: Broker, options: McpOptions = {}): McpHandler {
  const endpoint = new McpEndpoint(broker, resolveOptions(options))
  return Object.assign(
    (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders): void =>
      endpoint.handle(request, response, headers),
    {
      openStreams: () => endpoint.streams.size,
      close: (graceMs?: number) => endpoint.close(graceMs),
    },
  )
}

/** Names of methods for metrics; anything else is `unknown`, so that callers cannot make up label values. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(['initialize', 'ping', 'tools/list', 'tools/call'])

class McpEndpoint {
  readonly streams: OpenStreams
  readonly #broker: Broker
  readonly #options: ResolvedOptions
  readonly #originAllowed: OriginPolicy
  readonly #tools: ReadonlyMap<string, Tool>
  /** The tools as JSON texts, for `tools/list`. */
  readonly #toolTexts: ReadonlyMap<Tool, string>
  readonly #calls: Calls
  readonly #settlements: Settlements
  readonly #environment: CallEnvironment
  readonly #onFinished: ((exchange: Exchange, outcome: McpOutcome) => void) | undefined = undefined
  #closed: Promise<void> | undefined

  constructor(broker: Broker, options: ResolvedOptions) {
    this.#broker = broker
    this.#options = options
    this.streams = new OpenStreams(options.maxStreams)
    this.#originAllowed = originPolicy(options.trustedOrigins, {
      alsoLocal: MCP_LOCAL_HOSTS,
      ...(options.bindHost === undefined ? {} : { bindHost: options.bindHost }),
    })
    this.#tools = createTools(options.agents === undefined ? {} : { agents: options.agents })
    this.#toolTexts = new Map([...this.#tools.values()].map((tool) => [tool, JSON.stringify(tool.definition)]))
    const failed = (error: unknown): void => {
      try {
        options.hooks.failed?.(error)
      } catch {}
    }
    this.#calls = new Calls(options.toolTimeoutSeconds * 1000)
    this.#settlements = new Settlements(options.settleGraceMs, failed)
    this.#environment = {
      calls: this.#calls,
      settlements: this.#settlements,
      agents: options.agents,
      keepAliveMs: options.keepAliveMs,
      failed,
    }
    const { hooks } = options
    if (hooks.requestFinished !== undefined) {
      this.#onFinished = ({ method, tool, startedAt }, outcome) => {
        try {
          hooks.requestFinished?.({ method, tool, outcome, seconds: (performance.now() - startedAt) / 1000 })
        } catch {}
      }
    }
  }

  /** S5: origin, then authentication, then the body. */
  handle(request: IncomingMessage, response: ServerResponse, headers: OutgoingHttpHeaders | undefined): void {
    if (this.#settlements.size > 0) this.#settlements.nextRequest(request.socket)
    const exchange = new Exchange(request, response, headers, this.#onFinished)
    const { method } = request
    if (method === 'GET' || method === 'DELETE') exchange.method = method
    if (!this.#originAllowed(request.headers.origin)) {
      exchange.refuse(originRefused(), 'origin_refused')
      return
    }
    if (method !== 'POST' && method !== 'GET' && method !== 'DELETE') {
      exchange.empty(405, 'error', { Allow: 'GET, POST, DELETE' })
      return
    }
    if (this.#closed !== undefined) {
      response.shouldKeepAlive = false
      exchange.refuse(unavailable('the server is shutting down; try again'))
      return
    }
    authenticate(
      this.#options.authenticator,
      request,
      (identity) => this.#authenticated(exchange, identity),
      (cause) => this.#unauthenticated(exchange, cause),
    )
  }

  #unauthenticated(exchange: Exchange, cause: unknown): void {
    const refused = (id?: string): JsonRpcError => {
      if (cause instanceof AuthenticationError) return authenticationFailed(id)
      this.#environment.failed(cause)
      return internalError(cause, id)
    }
    readRefusedId(exchange.request, (id, bodyRead) => {
      if (bodyRead) exchange.fail(refused(id), undefined, 'unauthenticated')
      else exchange.refuse(refused(), 'unauthenticated')
    })
  }

  #authenticated(exchange: Exchange, identity: Identity): void {
    const { request } = exchange
    if (request.method === 'POST') this.#post(exchange, identity)
    else this.#withoutBody(exchange, identity)
  }

  #post(exchange: Exchange, identity: Identity): void {
    const { request } = exchange
    const problem = jsonHeadersProblem(request.headers)
    if (problem) {
      exchange.refuse(problem)
      return
    }
    readBody(request, this.#options.maxBodyBytes, (error, body) => {
      if (error) exchange.refuse(error)
      else this.#message(exchange, identity, body)
    })
  }

  #message(exchange: Exchange, identity: Identity, body: Buffer): void {
    let message: JsonRpcMessage | undefined
    try {
      message = parseJsonRpc(body, { maxKeys: MAX_JSON_KEYS })
      this.#dispatch(exchange, identity, message)
    } catch (error) {
      const id = message?.kind === 'request' ? message.id : undefined
      if (error instanceof JsonRpcError) {
        exchange.fail(error, error.id ?? id)
      } else {
        this.#environment.failed(error)
        exchange.fail(internalError(error, id))
      }
    }
  }

  #dispatch(exchange: Exchange, identity: Identity, message: JsonRpcMessage): void {
    exchange.checkHeaders(message.kind === 'request' ? message.id : undefined)
    if (message.kind === 'request') {
      if (KNOWN_METHODS.has(message.method)) exchange.method = message.method
      this.#request(exchange, identity, message)
      return
    }
    exchange.method = 'notification'
    if (message.kind === 'notification') {
      if (exchange.revision.requestMethods.has(message.method)) {
        throw new JsonRpcError(
          JSON_RPC_CODES.INVALID_REQUEST,
          `invalid request: ${message.method} needs an id; it was not executed`,
        )
      }
      if (message.method === 'notifications/cancelled') {
        const cancelled = readCancelledId(message.paramsText)
        const key = cancelled === undefined ? undefined : callKey(identity.clientId, exchange.sessionId, cancelled)
        if (key !== undefined) this.#calls.cancel(key)
      }
    }
    exchange.empty(202)
  }

  #request(exchange: Exchange, identity: Identity, message: JsonRpcRequest): void {
    const { id, method, params } = message
    switch (method) {
      case 'tools/call':
        this.#callTool(exchange, identity, message)
        break
      case 'ping':
        exchange.succeed(id, '{}')
        break
      case 'tools/list':
        refuseCursor(params, id)
        exchange.succeed(id, this.#toolList(handleOf(this.#broker, identity, exchange.request)))
        break
      case 'initialize': {
        const revision = negotiate(readProtocolVersion(params, id))
        const sessionId = newSessionId()
        exchange.revision = revision
        exchange.sessionId = sessionId
        const { serverInfo, instructions } = this.#options
        exchange.succeed(id, JSON.stringify(initializeResult(revision, serverInfo, instructions, sessionId)))
        break
      }
      default:
        throw new JsonRpcError(
          JSON_RPC_CODES.METHOD_NOT_FOUND,
          'method not found; this server has initialize, ping, tools/list and tools/call',
        )
    }
  }

  /** Tools that the policy lets the caller use on no channel at all are not shown (S4). */
  #toolList(broker: BrokerHandle): string {
    const shown: string[] = []
    for (const [{ needs }, text] of this.#toolTexts) {
      if (needs.patterns.some((pattern) => broker.mayPermit(needs.action, pattern))) shown.push(text)
    }
    return `{"tools":[${shown.join(',')}]}`
  }

  #callTool(exchange: Exchange, identity: Identity, message: JsonRpcRequest): void {
    const { id, params } = message
    const tool = readTool(this.#tools, params, id)
    exchange.tool = tool.definition.name
    const args = readArguments(params, id)
    const progressToken = readProgressToken(message)
    const call = new ToolCall(
      tool,
      handleOf(this.#broker, identity, exchange.request),
      exchange,
      id,
      exchange.accepted.events ? progressToken : undefined,
      this.#environment,
    )
    call.run(args)
  }

  #withoutBody(exchange: Exchange, { expiresAt }: Identity): void {
    try {
      exchange.checkHeaders()
      if (exchange.request.method === 'DELETE') {
        exchange.empty(200)
        return
      }
      if (!exchange.accepted.events) {
        throw new JsonRpcError(
          JSON_RPC_CODES.INVALID_REQUEST,
          'invalid request: GET opens an event stream; Accept must name text/event-stream',
          { status: 406 },
        )
      }
      if (!this.streams.hasRoom) {
        throw unavailable(`all ${this.#options.maxStreams} streams are open; try again later`)
      }
    } catch (error) {
      exchange.refuse(error instanceof JsonRpcError ? error : internalError(error))
      return
    }
    this.streams.add(exchange.openStream(this.#options.keepAliveMs, expiresAt))
    this.#onFinished?.(exchange, 'success')
  }

  close(graceMs = 5000): Promise<void> {
    this.#closed ??= (async () => {
      this.streams.closeAll()
      await this.#calls.close(graceMs)
      await this.#settlements.close(1000)
    })()
    return this.#closed
  }
}

function unavailable(reason: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, reason, { status: 503 })
}
