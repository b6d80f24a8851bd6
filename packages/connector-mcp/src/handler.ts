import type { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import type {
  Call,
  ConnectionCaller,
  HttpRequest,
  HttpResponse,
  Identity,
  JsonRpcMessage,
  JsonRpcRequest,
  Route,
  SseStream,
  Steps,
} from '@signalbox/http-kit'
import type { ScannedMessage } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError, parseJsonRpc, Surface } from '@signalbox/http-kit'
import {
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  MCP_LOCAL_HOSTS,
  OpenStreams,
  quietHook,
  scanJsonRpc,
} from '@signalbox/http-kit/internal'

import { callKey, Calls } from './calls.ts'
import type { EventMethods } from './events/event-methods.ts'
import { eventMethodsOf } from './events/mcp-events.ts'
import type { ExchangeEnvironment } from './mcp-exchange.ts'
import { McpExchange } from './mcp-exchange.ts'
import {
  calledTool,
  listText,
  membersText,
  MESSAGE_LIMITS,
  readArguments,
  readCancelledId,
  readProgressToken,
  readProtocolVersion,
  readRetry,
  readTool,
  readWatchedTasks,
  refuseCursor,
} from './methods.ts'
import { ProtectedResource } from './oauth.ts'
import type { McpOperations } from './operations.ts'
import { mcpOperations } from './operations.ts'
import type { ResolvedMcpOptions } from './options.ts'
import { RequestStates } from './request-state.ts'
import { TaskMethods } from './tasks/task-methods.ts'
import { TaskRequests } from './tasks/task-requests.ts'
import { Tasks } from './tasks/tasks.ts'
import type { CallEnvironment } from './tool-call.ts'
import { ToolCall } from './tool-call.ts'
import { refusalOfTool } from './tools/broker-failures.ts'
import { createTools, ToolList } from './tools/index.ts'
import type { Tool } from './tools/tool.ts'
import { resultMembers } from './tools/tool.ts'
import { acknowledgement, subscriptionMeta } from './wire/2026-07-28.ts'
import { discovery } from './wire/capabilities.ts'
import { newSessionId } from './wire/headers.ts'
import type { Revision } from './wire/revision.ts'
import { initializeResult } from './wire/revision.ts'
import { negotiate, SERVED_METHODS, STATELESS_REVISION } from './wire/revisions.ts'

/** The endpoint for `POST` and `GET /mcp` over a broker. */
export class McpEndpoint {
  readonly streams: OpenStreams
  readonly operations: McpOperations
  /** Present in the OAuth mode. */
  readonly protectedResource: ProtectedResource | undefined
  readonly #broker: Broker
  readonly #options: ResolvedMcpOptions
  readonly #surface: Surface
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #toolList: ToolList
  readonly #calls: Calls
  readonly #environment: CallEnvironment
  readonly #exchanges: ExchangeEnvironment
  readonly #discovery: string
  readonly #tasks: Tasks | undefined
  readonly #taskMethods: TaskMethods | undefined
  readonly #eventMethods: EventMethods | undefined

  /** @param tools The tools by name. @default the tools of the broker, and those for agents if there is a directory */
  constructor(broker: Broker, options: ResolvedMcpOptions, tools = createTools(options)) {
    this.#broker = broker
    this.#options = options
    this.streams = new OpenStreams(options.maxStreams)
    this.#tools = tools
    this.#toolList = new ToolList(tools.values())
    this.protectedResource = options.oauth && new ProtectedResource(options.oauth, options.path, [...tools.values()])
    this.#surface = new Surface({
      ...options,
      originsSetting: 'CONNECTORSMCP_TRUSTED_ORIGINS',
      alsoLocal: MCP_LOCAL_HOSTS,
      tracing: broker.tracing,
      drain: (graceMs) => this.#drain(graceMs),
      finish: () => this.#finish(),
    })
    const { failed, settlements } = this.#surface
    this.#calls = new Calls(options.toolTimeoutSeconds * 1000)
    const tasks = options.tasks && new Tasks(options.tasks, failed)
    const requests = tasks && new TaskRequests(tasks, this.#tools, this.#calls)
    this.#tasks = tasks
    this.operations = mcpOperations({
      broker,
      agents: options.agents,
      maxAnswerBytes: options.maxAnswerBytes,
      tools,
      tasks: tasks && requests && { tasks, requests },
    })
    this.#taskMethods =
      tasks &&
      requests &&
      new TaskMethods(tasks, requests, {
        broker,
        agents: options.agents,
        openStream: (exchange, caller) => this.#openStream(exchange, caller),
        heldBytes: (account) => this.#surface.heldBytes(account),
        failed,
      })
    this.#eventMethods =
      options.events &&
      eventMethodsOf(options.events, {
        broker,
        anonymous: options.authenticator.anonymous === true,
        openStream: (exchange, caller) => this.#openStream(exchange, caller),
        failed,
      })
    this.#environment = {
      tasks,
      states: new RequestStates(options.stateKey),
      calls: this.#calls,
      settlements,
      agents: options.agents,
      keepAliveMs: options.keepAliveMs,
      maxAnswerBytes: options.maxAnswerBytes,
      failed,
    }
    const { hooks, instructions, serverInfo } = options
    const finished = quietHook(hooks.requestFinished?.bind(hooks))
    this.#exchanges = {
      serverInfo: JSON.stringify(STATELESS_REVISION.implementation(serverInfo)),
      protectedResource: this.protectedResource,
      onFinished: finished && (({ method, tool, seconds }, outcome) => finished({ method, tool, outcome, seconds })),
    }
    this.#discovery = discovery(instructions, {
      tasks: tasks !== undefined,
      events: options.events !== undefined,
    })
    tasks?.open()
  }

  handle(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const exchange = new McpExchange(request, response, headers, this.#exchanges)
    this.#surface.serve(exchange, request.method === 'POST' ? this.#post : this.#olderRoute(exchange))
  }

  /** Returns `undefined` if the body is refused and answered. */
  *#parse({ exchange, caller }: Call<McpExchange>, body: Buffer): Steps<JsonRpcMessage | undefined> {
    try {
      if (body.byteLength <= LARGE_BODY_BYTES) return parseJsonRpc(body, MESSAGE_LIMITS, exchange.hold)
      const scanned = yield* scanJsonRpc(body, MESSAGE_LIMITS, exchange.hold)
      yield
      if (yield* this.#refuseTool(exchange, caller, scanned)) return undefined
      yield
      return yield* scanned.parse()
    } catch (error) {
      exchange.failBody(error)
      return undefined
    }
  }

  /** Refuses a large call of a tool that the caller may use on no channel, before its arguments are built. */
  *#refuseTool(exchange: McpExchange, caller: ConnectionCaller, scanned: ScannedMessage): Steps<boolean> {
    const { id } = scanned
    const tool = yield* calledTool(this.#tools, scanned)
    const refused = tool && refusalOfTool(tool, caller.handle(this.#broker))
    if (id === undefined || refused === undefined) return false
    exchange.method = 'tools/call'
    exchange.tool = tool?.definition.name
    const { missing } = refused
    if (missing !== undefined && exchange.refuseScope(id, missing)) return true
    exchange.succeed(id, resultMembers(refused), 'tool_error')
    return true
  }

  readonly #post: Route<McpExchange, JsonRpcMessage | undefined> = {
    accept: ({ exchange }) => {
      const problem = jsonHeadersProblem(exchange.request.headers)
      if (problem !== undefined) throw problem
      return this.#options.maxBodyBytes
    },
    read: (call, body) => this.#parse(call, body),
    run: ({ exchange, caller }, message) => {
      if (message !== undefined) this.#dispatch(exchange, caller, message)
    },
  }

  #dispatch(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcMessage): void {
    if (message.kind === 'request') exchange.id = message.id
    exchange.recognize(message)
    if (this.#refuseScopes(exchange, caller.identity)) return
    if (message.kind === 'request') {
      if (SERVED_METHODS.has(message.method)) exchange.method = message.method
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
    switch (this.#serves(exchange.revision, method) ? method : undefined) {
      case 'tools/call':
        this.#callTool(exchange, caller, message)
        break
      case 'ping':
        exchange.succeed(id, '')
        break
      case 'tools/list':
        refuseCursor(params, id)
        exchange.succeed(id, this.#listTools(exchange.revision, caller))
        break
      case 'initialize':
        this.#initialize(exchange, message)
        break
      case 'server/discover':
        exchange.succeed(id, this.#discovery)
        break
      case 'subscriptions/listen':
        this.#listen(exchange, caller, message)
        break
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        this.#taskMethods?.handle(exchange, caller, message)
        break
      case 'events/list':
      case 'events/poll':
      case 'events/stream':
      case 'events/subscribe':
      case 'events/unsubscribe':
        this.#eventMethods?.handle(exchange, caller, message)
        break
      default: {
        const methods = [...exchange.revision.methods].filter((each) => this.#serves(exchange.revision, each))
        throw new JsonRpcError(
          JSON_RPC_CODES.METHOD_NOT_FOUND,
          `method not found; this server supports ${listText(methods)}`,
        )
      }
    }
  }

  /** Returns `true` if the server has a method of a revision: the methods of tasks and events are optional. */
  #serves({ methods }: Revision, method: string): boolean {
    if (!methods.has(method)) return false
    if (method.startsWith('tasks/')) return this.#tasks !== undefined
    return !method.startsWith('events/') || this.#eventMethods !== undefined
  }

  #initialize(exchange: McpExchange, { id, params }: JsonRpcRequest): void {
    const revision = negotiate(readProtocolVersion(params, id))
    const sessionId = newSessionId()
    exchange.revision = revision
    exchange.sessionId = sessionId
    const { serverInfo, instructions } = this.#options
    exchange.succeed(id, membersText(initializeResult(revision, serverInfo, instructions, sessionId)))
  }

  /** Answers with a stream of notifications about tasks. It ends at once without them: the tools never change. */
  #listen(exchange: McpExchange, caller: ConnectionCaller, { id, params }: JsonRpcRequest): void {
    const taskIds = readWatchedTasks(params, id)
    if (!exchange.accepted.events) {
      const text = 'invalid request: the answer is an event stream; add text/event-stream to the Accept header'
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, text, { status: 406 })
    }
    if (taskIds !== undefined && this.#taskMethods !== undefined) {
      this.#taskMethods.listen(exchange, caller, id, taskIds)
      return
    }
    exchange.openStream(this.#options.keepAliveMs).write({ event: 'message', data: acknowledgement(id) })
    exchange.succeed(id, '', 'success', { meta: subscriptionMeta(id) })
  }

  #listTools(revision: Revision, caller: ConnectionCaller): string {
    // The list depends on the caller's permissions; anonymous callers all have the same.
    const scope = this.#options.authenticator.anonymous === true ? 'public' : 'private'
    return `"tools":${this.#toolList.textFor(caller.handle(this.#broker))}${revision.cacheHints(scope)}`
  }

  #callTool(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcRequest): void {
    const { id, params } = message
    const tool = readTool(this.#tools, params, id)
    exchange.tool = tool.definition.name
    const args = readArguments(params, id)
    const progressToken = readProgressToken(message)
    const call = new ToolCall(
      tool,
      caller.handleWithin(exchange.span, this.#broker),
      exchange,
      id,
      exchange.accepted.events ? progressToken : undefined,
      this.#environment,
    )
    call.run(args, exchange.revision.stateless ? readRetry(params, id) : undefined, message.freeFormText)
  }

  /** Returns the route of a request without a message: GET opens a stream in the older revisions. */
  #olderRoute(exchange: McpExchange): Route<McpExchange> | readonly string[] {
    const { method } = exchange.request
    const isOlder = method === 'GET' || method === 'DELETE'
    if (isOlder) exchange.method = method
    // The OAuth mode challenges every request without a valid token, with any method.
    const isServed = this.protectedResource !== undefined || (isOlder && !exchange.revision.stateless)
    return isServed ? this.#withoutBody : []
  }

  readonly #withoutBody: Route<McpExchange> = {
    run: ({ exchange, caller }) => {
      // A DELETE ends a session in the older revisions. There is nothing to end: no state is kept per session.
      if (exchange.request.method !== 'GET' || exchange.revision.stateless) {
        exchange.refuseMethod()
        return
      }
      if (this.#refuseScopes(exchange, caller.identity)) return
      exchange.checkHeaders()
      if (!exchange.accepted.events) {
        const text = 'invalid request: GET opens an event stream; add text/event-stream to the Accept header'
        throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, text, { status: 406 })
      }
      if (this.#openStream(exchange, caller) !== undefined) this.#exchanges.onFinished?.(exchange, 'success')
    },
  }

  /** Refuses a token whose scopes are of no use here: the client asks for others at once, instead of seeing no tool. */
  #refuseScopes(exchange: McpExchange, { actions }: Identity): boolean {
    if (actions === undefined || this.protectedResource?.usefulFor(actions) !== false) return false
    return exchange.refuseScope(exchange.id, undefined)
  }

  /** Opens a stream as the answer, and counts it. Refuses it, and returns `undefined`, if a limit is reached. */
  #openStream(exchange: McpExchange, { account, identity }: ConnectionCaller): SseStream | undefined {
    if (!this.streams.hasRoomFor(account)) {
      const text = `this endpoint allows ${this.streams.limit} open streams, and one caller half of them; close one, or try again later`
      exchange.fail(new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, text, { status: 503 }), exchange.id)
      return undefined
    }
    const refusal = exchange.hold?.toStream()
    if (refusal !== undefined) {
      exchange.refuse(refusal)
      return undefined
    }
    const stream = exchange.openStream(this.#options.keepAliveMs, identity.expiresAt)
    this.streams.add(stream, account)
    return stream
  }

  close(graceMs: number): Promise<void> {
    return this.#surface.close(graceMs)
  }

  async #drain(graceMs: number): Promise<void> {
    this.#taskMethods?.close()
    this.#eventMethods?.close()
    this.streams.closeAll()
    await this.#calls.close(graceMs)
  }

  async #finish(): Promise<void> {
    await this.#options.responders?.close()
    await this.#tasks?.close()
  }
}
