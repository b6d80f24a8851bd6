import type { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { ConnectionCaller, JsonRpcMessage, JsonRpcRequest } from '@signalbox/http-kit'
import {
  BodyRefused,
  Endpoint,
  internalError,
  JSON_RPC_CODES,
  jsonHeadersProblem,
  JsonRpcError,
  MAX_JSON_KEYS,
  MCP_LOCAL_HOSTS,
  OpenStreams,
  parseJsonRpc,
  Settlements,
} from '@signalbox/http-kit'

import { callKey, Calls } from './calls.ts'
import { McpExchange } from './mcp-exchange.ts'
import {
  readArguments,
  readCancelledId,
  readProgressToken,
  readProtocolVersion,
  readTool,
  refuseCursor,
} from './methods.ts'
import type { McpOutcome, ResolvedMcpOptions } from './options.ts'
import { newSessionId } from './session.ts'
import type { CallEnvironment } from './tool-call.ts'
import { ToolCall } from './tool-call.ts'
import { createTools } from './tools/index.ts'
import type { Tool } from './tools/tool.ts'
import { initializeResult } from './wire/revision.ts'
import { negotiate } from './wire/revisions.ts'

/** Method names for metrics. Others are reported as `unknown`, so that callers cannot create label values. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(['initialize', 'ping', 'tools/list', 'tools/call'])

/** The endpoint for `POST`, `GET` and `DELETE /mcp` over a broker. */
export class McpEndpoint {
  readonly streams: OpenStreams
  readonly #broker: Broker
  readonly #options: ResolvedMcpOptions
  readonly #endpoint: Endpoint
  readonly #tools: ReadonlyMap<string, Tool>
  /** The JSON text of each tool, for `tools/list`. */
  readonly #toolTexts: ReadonlyMap<Tool, string>
  readonly #calls: Calls
  readonly #settlements: Settlements
  readonly #environment: CallEnvironment
  readonly #onFinished: ((exchange: McpExchange, outcome: McpOutcome) => void) | undefined = undefined
  #closed: Promise<void> | undefined

  constructor(broker: Broker, options: ResolvedMcpOptions) {
    this.#broker = broker
    this.#options = options
    this.streams = new OpenStreams(options.maxStreams)
    this.#tools = createTools(options.agents === undefined ? {} : { agents: options.agents })
    this.#toolTexts = new Map([...this.#tools.values()].map((tool) => [tool, JSON.stringify(tool.definition)]))
    this.#endpoint = new Endpoint({
      authenticator: options.authenticator,
      trustedOrigins: options.trustedOrigins,
      bindHost: options.bindHost,
      alsoLocal: MCP_LOCAL_HOSTS,
      frontDoor: options.frontDoor,
      failed: (error, request) => options.hooks.failed?.(error, request),
    })
    const failed = (error: unknown, request?: IncomingMessage): void => this.#endpoint.report(error, request)
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

  handle(request: IncomingMessage, response: ServerResponse, headers: OutgoingHttpHeaders | undefined): void {
    if (this.#settlements.size > 0) this.#settlements.nextRequest(request.socket)
    const exchange = new McpExchange(request, response, headers, this.#onFinished)
    const { method } = request
    if (method === 'POST') {
      this.#endpoint.admit(exchange, this.#post)
    } else if (method === 'GET' || method === 'DELETE') {
      exchange.method = method
      this.#endpoint.admit(exchange, this.#withoutBody)
    } else {
      exchange.empty(405, 'error', { Allow: 'GET, POST, DELETE' })
    }
  }

  readonly #post = (exchange: McpExchange, caller: ConnectionCaller): void => {
    const problem = jsonHeadersProblem(exchange.request.headers)
    if (problem === undefined) {
      this.#endpoint.readBody(exchange, this.#options.maxBodyBytes, (_exchange, body) =>
        this.#message(exchange, caller, body),
      )
    } else exchange.fail(problem)
  }

  #message(exchange: McpExchange, caller: ConnectionCaller, body: Buffer): void {
    try {
      const message = parseJsonRpc(body, { maxKeys: MAX_JSON_KEYS, uniqueKeys: true, budget: exchange.hold })
      if (message.kind === 'request') exchange.id = message.id
      this.#dispatch(exchange, caller, message)
    } catch (error) {
      if (error instanceof BodyRefused) exchange.refuse(error.refusal)
      else if (error instanceof JsonRpcError) exchange.fail(error, error.id ?? exchange.id)
      else throw error
    }
  }

  #dispatch(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcMessage): void {
    exchange.checkHeaders(message.kind === 'request' ? message.id : undefined)
    if (message.kind === 'request') {
      if (KNOWN_METHODS.has(message.method)) exchange.method = message.method
      this.#request(exchange, caller, message)
      return
    }
    exchange.method = 'notification'
    if (message.kind === 'notification') {
      if (exchange.revision.requestMethods.has(message.method)) {
        throw new JsonRpcError(
          JSON_RPC_CODES.INVALID_REQUEST,
          `invalid request: ${message.method} must have an id; it was not executed`,
        )
      }
      if (message.method === 'notifications/cancelled') {
        const cancelled = readCancelledId(message.paramsText)
        const key =
          cancelled === undefined ? undefined : callKey(caller.identity.clientId, exchange.sessionId, cancelled)
        if (key !== undefined) this.#calls.cancel(key)
      }
    }
    exchange.empty(202)
  }

  #request(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcRequest): void {
    const { id, method, params } = message
    switch (method) {
      case 'tools/call':
        this.#callTool(exchange, caller, message)
        break
      case 'ping':
        exchange.succeed(id, '{}')
        break
      case 'tools/list':
        refuseCursor(params, id)
        exchange.succeed(id, this.#toolList(caller.handle(this.#broker)))
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
          'method not found; this server supports initialize, ping, tools/list and tools/call',
        )
    }
  }

  /** Lists the tools that the policy allows the caller on at least one channel. */
  #toolList(broker: BrokerHandle): string {
    const shown: string[] = []
    for (const [{ needs }, text] of this.#toolTexts) {
      if (needs.patterns.some((pattern) => broker.mayPermit(needs.action, pattern))) shown.push(text)
    }
    return `{"tools":[${shown.join(',')}]}`
  }

  #callTool(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcRequest): void {
    const { id, params } = message
    const tool = readTool(this.#tools, params, id)
    exchange.tool = tool.definition.name
    const args = readArguments(params, id)
    const progressToken = readProgressToken(message)
    const call = new ToolCall(
      tool,
      caller.handle(this.#broker),
      exchange,
      id,
      exchange.accepted.events ? progressToken : undefined,
      this.#environment,
    )
    call.run(args)
  }

  readonly #withoutBody = (exchange: McpExchange, { account, identity }: ConnectionCaller): void => {
    const { request } = exchange
    try {
      exchange.checkHeaders()
    } catch (error) {
      exchange.fail(error instanceof JsonRpcError ? error : internalError(error))
      return
    }
    if (request.method === 'DELETE') {
      exchange.empty(200)
    } else if (!exchange.accepted.events) {
      const text = 'invalid request: GET opens an event stream; add text/event-stream to the Accept header'
      exchange.fail(new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, text, { status: 406 }))
    } else {
      this.#openStream(exchange, account, identity.expiresAt)
    }
  }

  #openStream(exchange: McpExchange, account: string, endsAt: number | undefined): void {
    const { keepAliveMs } = this.#options
    if (!this.streams.hasRoomFor(account)) {
      const text = `this endpoint allows ${this.streams.limit} open streams, and one caller half of them; close one, or try again later`
      exchange.fail(new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, text, { status: 503 }))
      return
    }
    const refusal = exchange.hold?.toStream()
    if (refusal === undefined) {
      this.streams.add(exchange.openStream(keepAliveMs, endsAt), account)
      this.#onFinished?.(exchange, 'success')
    } else exchange.refuse(refusal)
  }

  close(graceMs: number): Promise<void> {
    this.#endpoint.close()
    this.#closed ??= (async () => {
      this.streams.closeAll()
      await this.#calls.close(graceMs)
      await this.#settlements.close(1000)
    })()
    return this.#closed
  }
}
