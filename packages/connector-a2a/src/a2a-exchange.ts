import type { OutgoingHttpHeaders } from 'node:http'

import type { SpanAttributes, Tracing } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type {
  ConnectionCaller,
  HttpRequest,
  HttpResponse,
  Refusal,
  RefusedOutcome,
  RequestSpan,
  Steps,
} from '@signalbox/http-kit'
import type { RequestHead } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import {
  addressOf,
  idText,
  isServerError,
  jsonRpcErrorText,
  JsonRpcExchange,
  LARGE_BODY_BYTES,
  onOneLine,
  SSE_HEADERS,
  TextParts,
} from '@signalbox/http-kit/internal'

import type { Cards } from './cards/cards.ts'
import { asNative, NativeError } from './native/errors.ts'
import type { CallHead, OfficialCall } from './native/official-call.ts'
import {
  contentTypeError,
  guessOfficialCall,
  needsNativeStream,
  officialCall,
  streamsAreOff,
  versionProblem,
} from './native/official-call.ts'
import type { A2aRequestEvent } from './options.ts'

/** The outcome of a request that the agent answers with its own JSON-RPC error. */
export const AGENTS_OWN = 'agent'

/** The parts of an exchange that official calls need. */
export interface NativeParts extends Omit<CallHead, 'method'> {
  readonly cards: Pick<Cards, 'extended'>
}

/** An error as the caller gets it. */
export interface ErrorAnswer {
  /** The HTTP status. */
  readonly status: number
  readonly text: string
}

/** The texts before and after another. */
type Frame = readonly [before: string, after: string]

const NO_FRAME: Frame = ['', '']

/** Returns a text in UTF-8 in its frame. A long text stays bytes. */
function framed([before, after]: Frame, text: Uint8Array): string | TextParts {
  if (text.byteLength > LARGE_BODY_BYTES) return new TextParts().add(before).add(text).add(after)
  return `${before}${decodeText(text) ?? ''}${after}`
}

/** One HTTP request to an agent, and its one answer. */
export class A2aExchange extends JsonRpcExchange {
  /** The agent's id as a metric label; `unknown` until the agent is found. */
  agentId = 'unknown'
  /** The ClientID of the caller, set with the agent's id. */
  clientId = ''
  method = 'unknown'
  /** The call as an official SDK makes it, as soon as that is known; undefined for the dialect. */
  official: OfficialCall | undefined
  /** The parts of the request that show whether it is an official call; undefined if only the dialect is served. */
  readonly head: Omit<CallHead, 'method'> | undefined
  /** Writes the extended cards that agents send. */
  readonly cards: Pick<Cards, 'extended'> | undefined
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined
  #errorCode: string | undefined

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((event: A2aRequestEvent) => void) | undefined,
    native?: NativeParts,
  ) {
    super(request, response, moreHeaders)
    this.head = native
    this.cards = native?.cards
    this.#onFinished = onFinished
  }

  /** The method of A2A that the request calls, by its name in JSON-RPC; undefined if it is not known. */
  get #rpcMethod(): string | undefined {
    const { method, official } = this
    const name = official?.method?.names[official.version] ?? method
    return name === 'unknown' ? undefined : name
  }

  protected override describe(tracing: Tracing): RequestSpan {
    const name = this.template === undefined ? this.#rpcMethod : undefined
    return name === undefined ? super.describe(tracing) : { name }
  }

  protected override attributes(): SpanAttributes {
    if (this.template !== undefined) return super.attributes()
    const { id, request } = this
    return {
      'rpc.system.name': 'jsonrpc',
      'rpc.method': this.#rpcMethod,
      'jsonrpc.request.id': id === undefined ? undefined : idText(id),
      'client.address': addressOf(request),
      'network.protocol.name': 'http',
      'network.transport': 'tcp',
    }
  }

  protected override outcome(): SpanAttributes {
    const code = this.#errorCode
    if (code !== undefined) this.span?.fail(code, isServerError(code))
    return { 'rpc.response.status_code': code === AGENTS_OWN ? undefined : code, ...super.outcome() }
  }

  /**
   * Answers with a result, a piece of work at a time. `id` and `result` are JSON source text and are sent unchanged,
   * but for the line ends in an event.
   * @param headers Headers of the agent's answer
   */
  *succeed(id: string, result: Uint8Array, headers?: OutgoingHttpHeaders): Steps<void> {
    const frame = this.resultFrame(id)
    if (this.official?.streams === true) this.#event(framed(frame, yield* onOneLine(result)), headers)
    else this.#json(200, framed(frame, result), headers)
    this.finished('success')
  }

  /** Answers with the agent's own error, JSON source text, as {@link succeed} does with a result. */
  *failAsAgent(id: string, error: string, headers?: OutgoingHttpHeaders): Steps<void> {
    const { status, text } = this.agentErrorAnswer(id, error)
    if (this.#errorsAreEvents) this.#event(framed(NO_FRAME, yield* onOneLine(encodeText(text))), headers)
    else this.#json(status, text, headers)
    this.finished('error', AGENTS_OWN)
  }

  /**
   * Answers with a JSON-RPC error of the gateway. The HTTP status is 200 unless the error has its
   * own status. The body need not have been read.
   */
  fail(error: JsonRpcError, id: string | undefined = error.id): void {
    this.#fail(error, id)
  }

  override answerThrown(error: unknown): void {
    if (!(error instanceof JsonRpcError)) throw error
    this.fail(error, error.id ?? this.id)
  }

  /** Answers a request whose headers do not allow its body, before the body is read. */
  failHeaders(problem: JsonRpcError): void {
    this.#guess(undefined)
    const wrongType = problem.code === JSON_RPC_CODES.PARSE_ERROR && this.official !== undefined
    this.fail(wrongType ? contentTypeError(problem) : problem)
  }

  protected override answerUnauthenticated(head: RequestHead, cause: unknown): void {
    this.#guess(head.request?.method)
    super.answerUnauthenticated(head, cause)
  }

  /**
   * Records whether a request is an official call. Its errors are written for that from then on.
   * @throws JsonRpcError for a call that is not served
   */
  recognize(method: string): void {
    if (this.head === undefined) {
      if (needsNativeStream(method)) throw streamsAreOff(method)
      return
    }
    this.official = officialCall({ ...this.head, method })
    const problem = this.official && versionProblem(this.official, this.head.version)
    if (problem !== undefined) throw problem
  }

  /** Returns the text around a result in the caller's binding of A2A. `id` is JSON source text. */
  protected resultFrame(id: string): Frame {
    return [`{"jsonrpc":"2.0","id":${id},"result":`, '}']
  }

  /** Returns the agent's own error, JSON source text, in the caller's binding of A2A. */
  protected agentErrorAnswer(id: string, error: string): ErrorAnswer {
    return { status: 200, text: `{"jsonrpc":"2.0","id":${id},"error":${error}}` }
  }

  /** Returns an error of the gateway in the caller's binding of A2A. */
  protected gatewayErrorAnswer(error: JsonRpcError, id: string | undefined): ErrorAnswer {
    return { status: error.status ?? 200, text: jsonRpcErrorText(error, id) }
  }

  /** Returns the headers that describe every JSON answer. */
  protected contentHeaders(): OutgoingHttpHeaders {
    return { 'Content-Type': 'application/json' }
  }

  #guess(method: string | undefined): void {
    if (this.head !== undefined) this.official ??= guessOfficialCall({ ...this.head, method })
  }

  protected override answerError(error: JsonRpcError, _outcome: RefusedOutcome, headers?: OutgoingHttpHeaders): void {
    this.#fail(error, error.id, headers)
  }

  /**
   * Maps a refusal to a JSON-RPC error. Every exceeded limit is `server busy`, as for a busy agent.
   */
  protected override refusalError(refusal: Refusal): JsonRpcError {
    if (refusal.reason === 'body_too_large') return this.#tooLarge(refusal)
    if (refusal.reason !== 'limit') return super.refusalError(refusal)
    const text = `server busy: ${refusal.message}`
    this.#guess(undefined)
    if (this.official === undefined) return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, text)
    return new NativeError(JSON_RPC_CODES.INTERNAL_ERROR, 'LIMIT_EXCEEDED', text, {
      retryAfterSeconds: refusal.retryAfterSeconds,
      metadata: refusal.limit === undefined ? undefined : { limit: refusal.limit },
    })
  }

  #tooLarge(refusal: Refusal): JsonRpcError {
    this.#guess(undefined)
    const { message, status } = super.refusalError(refusal)
    if (this.official === undefined) return super.refusalError(refusal)
    const metadata = { limit: 'MAX_BODY_BYTES' }
    return new NativeError(JSON_RPC_CODES.INVALID_REQUEST, 'REQUEST_TOO_LARGE', message, {
      metadata,
      ...(status === undefined ? {} : { status }),
    })
  }

  #fail(given: JsonRpcError, id: string | undefined, givenHeaders?: OutgoingHttpHeaders): void {
    const error = this.official === undefined ? given : asNative(given)
    const moreHeaders = error instanceof NativeError ? { ...givenHeaders, ...error.headers } : givenHeaders
    const { status, text } = this.gatewayErrorAnswer(error, id)
    if (!this.request.readableEnded) {
      if (this.begin()) this.sendRefusal(status, this.#headers(moreHeaders), text)
    } else if (status === 200 && this.#errorsAreEvents) this.#event(text, moreHeaders)
    else this.#json(status, text, moreHeaders)
    this.finished('error', String(error.code))
  }

  /** Clients of A2A 0.3 read nothing but events after a request for a stream. */
  get #errorsAreEvents(): boolean {
    return this.official?.streams === true && this.official.version === '0.3'
  }

  /** Answers with a stream of one event, which is one line. */
  #event(line: string | TextParts, moreHeaders?: OutgoingHttpHeaders): void {
    if (!this.begin() || this.abandoned) return
    const headers = { ...this.moreHeaders, ...moreHeaders, ...SSE_HEADERS }
    if (typeof line === 'string') this.send(200, headers, `data: ${line}\n\n`)
    else this.sendLong(200, headers, new TextParts().add('data: ').add(line).add('\n\n'))
  }

  /** Answers with a status and no body. */
  empty(status: number, headers?: OutgoingHttpHeaders): void {
    if (this.begin()) this.send(status, { ...this.moreHeaders, ...headers }, '')
  }

  /** Adds headers to the answer that is still to come. */
  addHeaders(headers: OutgoingHttpHeaders): void {
    this.moreHeaders = { ...this.moreHeaders, ...headers }
  }

  /**
   * Begins an answer that other code writes, and returns its additional headers, such as CORS
   * headers.
   */
  takeHeaders(): OutgoingHttpHeaders {
    this.begin()
    return { ...this.moreHeaders }
  }

  /** Records the agent of the request, for the hooks. */
  found(agentId: string, { identity }: ConnectionCaller): void {
    this.agentId = agentId
    this.clientId = identity.clientId
  }

  /** Reports the outcome to the hooks, for an answer that other code wrote, such as a stream. */
  finished(status: 'success' | 'error', errorCode?: string, firstByteSeconds?: number): void {
    this.#errorCode = errorCode
    if (this.#onFinished === undefined) return
    const { agentId, clientId, method, seconds } = this
    this.#onFinished({
      agentId,
      clientId,
      method,
      status,
      errorCode,
      seconds,
      firstByteSeconds: firstByteSeconds ?? seconds,
    })
  }

  #json(status: number, text: string | TextParts, moreHeaders?: OutgoingHttpHeaders): void {
    if (!this.begin() || this.abandoned) return
    const headers = this.#headers(moreHeaders)
    // The bytes of the reply count for the caller until the answer is written.
    if (typeof text !== 'string') this.sendLong(status, headers, text)
    else if (text.length > LARGE_BODY_BYTES) this.sendLong(status, headers, TextParts.of(text))
    else this.send(status, headers, text)
  }

  #headers(moreHeaders?: OutgoingHttpHeaders): OutgoingHttpHeaders {
    return { ...this.moreHeaders, ...moreHeaders, ...this.contentHeaders() }
  }
}
