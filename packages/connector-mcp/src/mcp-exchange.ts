import type { OutgoingHttpHeaders } from 'node:http'

import type { PolicyAction, SpanAttributes, Tracing } from '@signalbox/broker-core'
import { traceContextOf } from '@signalbox/broker-core/internal'
import type { HttpRequest, HttpResponse, JsonObject, JsonRpcMessage, RequestSpan, Unsettled } from '@signalbox/http-kit'
import type { RequestHead } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError, SseStream } from '@signalbox/http-kit'
import {
  addressOf,
  authenticationFailed,
  idText,
  isServerError,
  errorText,
  eventText,
  jsonRpcErrorText,
  JsonRpcExchange,
  RefusedError,
  SSE_HEADERS,
  successText,
  TextParts,
} from '@signalbox/http-kit/internal'

import type { McpOutcome } from './hooks.ts'
import type { ProtectedResource } from './oauth.ts'
import type { ClientCapabilities } from './wire/capabilities.ts'
import type { AcceptedMediaTypes, ProtocolHeaders } from './wire/headers.ts'
import { acceptedBy, checkProtocolHeaders, readProtocolHeaders } from './wire/headers.ts'
import { capabilitiesIn, checkStateless, metaOf, namesRevision, traceContext } from './wire/request-meta.ts'
import type { ResultType, Revision } from './wire/revision.ts'
import { DEFAULT_REVISION, SERVED_METHODS, STATELESS_REVISION } from './wire/revisions.ts'

/** The notifications of clients (MCP 2025-11-25). Others may have any name, so their names are not recorded. */
const NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/cancelled',
  'notifications/initialized',
  'notifications/progress',
  'notifications/roots/list_changed',
])

/** The parts that all exchanges of one connector share. */
export interface ExchangeEnvironment {
  /** The server's name, in the results of stateless revisions: JSON text. */
  readonly serverInfo: string
  /** Present in the OAuth mode. */
  readonly protectedResource: ProtectedResource | undefined
  readonly onFinished: ((exchange: McpExchange, outcome: McpOutcome) => void) | undefined
}

interface SuccessOptions {
  readonly unsettled?: Unsettled | undefined
  readonly meta?: string
  readonly type?: ResultType
}

/** One HTTP request to the MCP endpoint and its answer, as JSON or as an event stream. */
export class McpExchange extends JsonRpcExchange {
  readonly #environment: ExchangeEnvironment
  readonly #named: ProtocolHeaders
  #accepted: AcceptedMediaTypes | undefined
  #capabilities: ClientCapabilities | undefined
  /** The protocol revision of the request: the one it names if supported, otherwise 2025-11-25. */
  revision: Revision
  /** The `_meta` of a request of a stateless revision. */
  meta: JsonObject | undefined
  #traceMeta: JsonObject | undefined
  #notification: string | undefined
  #failure: string | undefined
  sessionId: string | undefined
  /** The name of the method, for metrics. */
  method = 'unknown'
  tool: string | undefined
  #stream: SseStream | undefined

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    environment: ExchangeEnvironment,
  ) {
    super(request, response, moreHeaders)
    this.#environment = environment
    this.#named = readProtocolHeaders(request.headers)
    this.revision = this.#named.revision ?? DEFAULT_REVISION
    this.sessionId = this.#named.sessionId
  }

  /** @throws JsonRpcError -32600 for an unsupported version or a malformed session id */
  checkHeaders(id?: string): void {
    checkProtocolHeaders(this.request.headers, this.#named, id)
  }

  /**
   * Determines the revision of a message, and checks the parts of the request that the revision requires.
   * @throws JsonRpcError with a code of the revision
   */
  recognize(message: JsonRpcMessage): void {
    if (message.kind !== 'response') this.#traceMeta = metaOf(message)
    if (message.kind === 'notification' && NOTIFICATIONS.has(message.method)) this.#notification = message.method
    if (this.revision.stateless || namesRevision(message)) {
      this.revision = STATELESS_REVISION
      this.sessionId = undefined
      this.meta = checkStateless(this.request.headers, message)
    } else this.checkHeaders(message.kind === 'request' ? message.id : undefined)
  }

  /** The trace headers for agents that the request calls: those of its span, or of its caller if it is not recorded. */
  get traceHeaders(): Readonly<Record<string, string>> {
    const given = traceContext(this.request.headers, this.#traceMeta)
    return this.span === undefined ? given : { ...given, ...this.span.headers() }
  }

  /** The method of MCP that the message names; undefined if it is not known. */
  get #mcpMethod(): string | undefined {
    return SERVED_METHODS.has(this.method) ? this.method : this.#notification
  }

  protected override describe(tracing: Tracing): RequestSpan {
    const { tool, request } = this
    const method = this.#mcpMethod
    if (method === undefined) return super.describe(tracing)
    const name = tool === undefined ? method : `${method} ${tool}`
    const inMeta = traceContextOf(this.#traceMeta?.['traceparent'], this.#traceMeta?.['tracestate'])
    if (inMeta === undefined) return { name }
    const inHeaders = tracing.read(request.headers)
    return { name, parent: inMeta, links: inHeaders && [{ context: inHeaders }] }
  }

  protected override attributes(): SpanAttributes {
    const { id, method, revision, tool, request } = this
    return {
      'mcp.method.name': this.#mcpMethod,
      'gen_ai.tool.name': tool,
      'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
      'mcp.protocol.version': revision.version,
      'jsonrpc.request.id': id === undefined ? undefined : idText(id),
      'client.address': addressOf(request),
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
    }
  }

  protected override outcome(): SpanAttributes {
    const type = this.#failure
    if (type !== undefined) this.span?.fail(type, type === 'tool_error' || isServerError(type))
    return { 'rpc.response.status_code': type === 'tool_error' ? undefined : type, ...super.outcome() }
  }

  /** The client's capabilities. Only requests of stateless revisions declare them. */
  get capabilities(): ClientCapabilities {
    this.#capabilities ??= capabilitiesIn(this.meta)
    return this.#capabilities
  }

  get accepted(): AcceptedMediaTypes {
    this.#accepted ??= acceptedBy(this.request.headers.accept)
    return this.#accepted
  }

  /**
   * Answers with a JSON-RPC success.
   * @param members The members of the result, as JSON text without the braces. A long text is written in pieces, and refused
   * if the caller or the process has too many bytes of answers
   * @param meta More members of the result's `_meta`, for revisions that have one: JSON text with a leading comma
   * @param type The kind of the result, for revisions that name it. @default 'complete'
   */
  succeed(
    id: string,
    members: string | TextParts,
    outcome: McpOutcome = 'success',
    { unsettled, meta, type }: SuccessOptions = {},
  ): void {
    const frame = (inside: string): string =>
      successText(id, this.revision.result(inside, this.#environment.serverInfo, meta, type))
    if (typeof members === 'string') {
      this.#answer(200, frame(members), outcome, unsettled)
      return
    }
    const refusal = this.chargeLong(members)
    if (refusal === undefined) {
      // JSON text contains no NUL.
      const [head = '', tail = ''] = frame('\0').split('\0')
      this.#answer(200, new TextParts().add(head).add(members).add(tail), outcome, unsettled)
      return
    }
    unsettled?.settlements.settle(unsettled.settlement, 'rollback')
    this.id = id
    this.refuse(refusal)
  }

  /** Answers with a JSON-RPC error, with the HTTP status of its code. The body may be unread. */
  fail(error: JsonRpcError, id: string | undefined = error.id, outcome: McpOutcome = 'error'): void {
    this.#fail(error, id, outcome)
  }

  /** Answers a body that is not a valid message with a JSON-RPC error. */
  failBody(error: unknown): void {
    if (error instanceof RefusedError) {
      this.refuse(error.refusal)
      return
    }
    if (!(error instanceof JsonRpcError)) throw error
    const status = error.status ?? this.revision.statusOf(error.code, true)
    this.#failure = String(error.code)
    this.#answer(status, jsonRpcErrorText(error), 'error')
  }

  override answerThrown(error: unknown): void {
    if (!(error instanceof JsonRpcError)) throw error
    this.fail(error, error.id ?? this.id)
  }

  /** Refuses a method. The header `Allow` lists the methods of the request's revision. */
  override refuseMethod(): void {
    this.empty(405, 'error', { Allow: this.revision.stateless ? 'POST' : 'GET, POST' })
  }

  /** In the OAuth mode every revision answers with HTTP 401. */
  protected override answerUnauthenticated(head: RequestHead, cause: unknown): void {
    const challenge = this.#environment.protectedResource?.challenge(this.request, cause)
    if (challenge === undefined) {
      super.answerUnauthenticated(head, cause)
      return
    }
    const { code, message, id } = authenticationFailed(head.id)
    this.#fail(new JsonRpcError(code, message, { id, status: 401 }), id, 'unauthenticated', challenge)
  }

  /**
   * Answers a call that the token's scopes do not allow, in the OAuth mode. Returns `false` in other modes.
   * @param action The action that needs another scope; `undefined`: no scope of the token is of use here
   */
  refuseScope(id: string | undefined, action: PolicyAction | undefined): boolean {
    const resource = this.#environment.protectedResource
    if (resource === undefined) return false
    const challenge = action === undefined ? resource.insufficientForAll() : resource.insufficient(action)
    this.#fail(
      new JsonRpcError(JSON_RPC_CODES.AUTHENTICATION_FAILED, INSUFFICIENT, { status: 403 }),
      id,
      'error',
      challenge,
    )
    return true
  }

  protected override answerError(error: JsonRpcError, outcome: McpOutcome, headers?: OutgoingHttpHeaders): void {
    this.#fail(error, error.id, outcome, headers)
  }

  #fail(error: JsonRpcError, id: string | undefined, outcome: McpOutcome, headers?: OutgoingHttpHeaders): void {
    const { code, data, message, status = this.revision.statusOf(code, false) } = error
    this.#failure = String(code)
    const text = errorText(id, code, message, data)
    if (this.request.readableEnded || this.#stream !== undefined) {
      this.#answer(status, text, outcome, undefined, headers)
    } else if (this.begin()) {
      const refused = { ...this.#headers(), ...headers, 'Content-Type': 'application/json' }
      this.sendRefusal(status, status === 401 ? { ...refused, ...CHALLENGE, ...headers } : refused, text)
      this.#finished(outcome)
    }
  }

  /** Answers without a body. */
  empty(status: number, outcome: McpOutcome = 'success', headers?: OutgoingHttpHeaders): void {
    if (!this.begin()) return
    if (this.#stream !== undefined) this.#stream.end()
    else this.send(status, { ...this.#headers(), ...headers }, '')
    this.#finished(outcome)
  }

  /** Starts a stream as the answer, and writes its head at once. */
  openStream(keepAliveMs: number, endsAt?: number): SseStream {
    this.#stream ??= new SseStream(this.response, {
      headers: this.#headers(),
      keepAliveMs,
      hold: this.hold,
      endsAt,
    })
    return this.#stream
  }

  /** Marks the request as finished if it was answered in another way or its client is gone. */
  finish(outcome: McpOutcome): void {
    if (!this.begin()) return
    this.#stream?.end()
    this.#finished(outcome)
  }

  #answer(
    status: number,
    text: string | TextParts,
    outcome: McpOutcome,
    unsettled?: Unsettled,
    moreHeaders?: OutgoingHttpHeaders,
  ): void {
    if (!this.begin()) return
    if (this.abandoned) {
      unsettled?.settlements.settle(unsettled.settlement, 'rollback')
      this.#finished('disconnected')
      return
    }
    if (this.#stream !== undefined) {
      this.#stream.release()
      if (typeof text === 'string') this.sendLast(messageEvent(text), unsettled)
      else this.sendLongLast(longMessageEvent(text), unsettled)
    } else if (status === 200 && !this.accepted.json) {
      const headers = { ...this.#headers(), ...moreHeaders, ...SSE_HEADERS }
      if (typeof text === 'string') this.send(status, headers, messageEvent(text), unsettled)
      else this.sendLong(status, headers, longMessageEvent(text), unsettled)
    } else {
      const headers = this.#headers()
      headers['Content-Type'] = 'application/json'
      if (status === 401) Object.assign(headers, CHALLENGE)
      if (moreHeaders !== undefined) Object.assign(headers, moreHeaders)
      if (typeof text === 'string') this.send(status, headers, text, unsettled)
      else this.sendLong(status, headers, text, unsettled)
    }
    this.#finished(outcome)
  }

  #headers(): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = { ...this.moreHeaders, 'MCP-Protocol-Version': this.revision.version }
    if (this.sessionId !== undefined) headers['MCP-Session-Id'] = this.sessionId
    return headers
  }

  #finished(outcome: McpOutcome): void {
    if (outcome === 'tool_error') this.#failure = outcome
    this.#environment.onFinished?.(this, outcome)
  }
}

function messageEvent(data: string): string {
  return eventText({ event: 'message', data })
}

/** Returns the event of a text without line ends. */
function longMessageEvent(data: TextParts): TextParts {
  return new TextParts().add('event: message\ndata: ').add(data).add('\n\n')
}

const INSUFFICIENT = "the token's scopes do not allow this; get a token with the scopes in WWW-Authenticate"

/** The header of every answer with status 401 (RFC 6750), without the OAuth mode. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="signalbox"' }
