import { argumentError, SignalboxError } from './errors.ts'
import { backoff, pause } from './time.ts'

/** The bearer token, or a function that returns the current one. It is called before each request. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>)

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface TransportOptions {
  readonly url: string
  readonly token: TokenSource | undefined
  readonly traceHeaders: (() => Readonly<Record<string, string>>) | undefined
  readonly fetch: Fetch
  readonly retries: number
  readonly timeoutMs: number
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
  /** Time that the server itself may wait, in ms; added to the time-out of the request. */
  readonly waitMs?: number | undefined
  /** `true` if repeating the call has no second effect: it is repeated after a broken connection too. */
  readonly repeatable: boolean
  /** The time for which the call is repeated, in ms. Default: the number of repeats of the client limits it instead. */
  readonly retryForMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** An answer with its body. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Returns the error in an answer; `undefined` if the answer is a success. */
export type FailureReader = (answer: Answer) => SignalboxError | undefined

/** Error codes of runtimes for connections that were never made: the server has not received the request. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ConnectionRefused',
])

/** Codes of the server for requests that it did not process. */
const NOT_PROCESSED = new Set(['TOO_MANY_REQUESTS', 'STREAM_LIMIT', 'SHUTTING_DOWN', 'SERVER_BUSY'])

/** Codes of failures that may be over at the next attempt, while the request may have been processed. */
const UNCERTAIN = new Set(['UNREACHABLE', 'TIMEOUT', 'ENGINE_UNAVAILABLE', 'INTERNAL'])

/** Sends HTTP requests with the token, a time-out, and retries. */
export class Transport {
  readonly #options: TransportOptions
  readonly #base: string

  constructor(options: TransportOptions) {
    this.#options = options
    this.#base = baseOf(options.url)
  }

  /**
   * Sends a request until it succeeds, its error is final, or the retries are used up.
   * @throws SignalboxError, or the reason of the signal
   */
  async call(call: Call, failureOf: FailureReader): Promise<Answer> {
    const begun = performance.now()
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await this.#attempt(call)
        const failure = failureOf(answer)
        if (failure === undefined) return answer
        throw failure
      } catch (error) {
        if (!(error instanceof SignalboxError)) throw error
        if (!isRetryable(error, call.repeatable)) throw error
        const { retryForMs, signal } = call
        const left = retryForMs === undefined ? Infinity : retryForMs - (performance.now() - begun)
        const spent = retryForMs === undefined ? attempt >= this.#options.retries : left <= (error.retryAfterMs ?? 0)
        if (spent) throw asRetryable(error)
        await pause(Math.min(backoff(attempt, error.retryAfterMs), left), signal)
        call.signal?.throwIfAborted()
      }
    }
  }

  /** Opens a stream. The caller ends it with the signal. @throws SignalboxError, or the reason of the signal */
  async open(call: Call): Promise<Response> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), this.#options.timeoutMs)
    try {
      return await this.#fetch(call, AbortSignal.any([limit.signal, ...(call.signal ? [call.signal] : [])]))
    } catch (error) {
      throw this.#failure(error, call, limit.signal)
    } finally {
      // The limit is for the head of the answer: the stream itself may last.
      clearTimeout(timer)
    }
  }

  async #attempt(call: Call): Promise<Answer> {
    const limit = AbortSignal.timeout(this.#options.timeoutMs + (call.waitMs ?? 0))
    try {
      const response = await this.#fetch(call, call.signal ? AbortSignal.any([limit, call.signal]) : limit)
      return { status: response.status, headers: response.headers, text: await response.text() }
    } catch (error) {
      throw this.#failure(error, call, limit)
    }
  }

  /** The trace that requests belong to at the moment, by its headers. */
  get trace(): Readonly<Record<string, string>> | undefined {
    return this.#options.traceHeaders?.()
  }

  async #fetch(call: Call, signal: AbortSignal): Promise<Response> {
    const { fetch, token } = this.#options
    const bearer = typeof token === 'function' ? await token() : token
    signal.throwIfAborted()
    const given = { ...this.trace, ...call.headers }
    const headers = bearer === undefined ? given : { ...given, Authorization: `Bearer ${bearer}` }
    return fetch(`${this.#base}${call.path}${queryText(call.query)}`, {
      method: call.method,
      headers,
      signal,
      redirect: 'error',
      body: call.body ?? null,
    })
  }

  #failure(error: unknown, { signal, path }: Call, limit: AbortSignal): unknown {
    if (signal?.aborted === true) return signal.reason
    if (error instanceof SignalboxError) return error
    if (limit.aborted) {
      return new SignalboxError('TIMEOUT', `no answer from ${this.#base}${path} in time`, { cause: error })
    }
    const code = causeCode(error)
    return new SignalboxError(
      'UNREACHABLE',
      `${this.#base} cannot be reached${code === undefined ? '' : ` (${code})`}; check that the server runs at this URL`,
      { cause: error, details: { connected: code === undefined || !NOT_CONNECTED.has(code) } },
    )
  }
}

/** Returns `true` if the call may succeed at the next attempt, and has no second effect then. */
export function isRetryable(error: SignalboxError, repeatable: boolean): boolean {
  if (error.retryable || NOT_PROCESSED.has(error.code)) return true
  if (error.code === 'UNREACHABLE' && error.details['connected'] === false) return true
  return repeatable && UNCERTAIN.has(error.code)
}

function asRetryable(error: SignalboxError): SignalboxError {
  const { code, message, status, problems, details, retryAfterMs, cause } = error
  return new SignalboxError(code, message, { status, problems, details, retryAfterMs, cause, retryable: true })
}

/** Returns the error of an answer without a usable body, by its status. */
export function statusFailure({ status, headers, text }: Answer): SignalboxError {
  const retryAfterMs = retryAfter({ headers })
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text
  const message = `the server answered with HTTP ${status}: ${shown.trim()}`
  const code = CODES_BY_STATUS[status] ?? (status >= 502 && status <= 504 ? 'UNREACHABLE' : 'RESPONSE_INVALID')
  return new SignalboxError(code, message, { status, retryAfterMs })
}

const CODES_BY_STATUS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL',
}

/**
 * Returns the time for which an answer asks to wait, in ms: its header `Retry-After`, in seconds or as a date. Returns
 * `undefined` without the header.
 */
export function retryAfter({ headers }: { readonly headers: Headers }): number | undefined {
  const text = headers.get('retry-after')?.trim()
  if (text === undefined) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

/** Returns the code that a runtime gives to the cause of a failed `fetch`. */
function causeCode(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; isErrorLike(at) && depth < 5; at = at.cause, depth++) {
    if (typeof at.code === 'string') return at.code
    const [first] = Array.isArray(at.errors) ? at.errors : []
    if (isErrorLike(first) && typeof first.code === 'string') return first.code
  }
  return undefined
}

function isErrorLike(
  value: unknown,
): value is { readonly code?: unknown; readonly cause?: unknown; readonly errors?: unknown } {
  return typeof value === 'object' && value !== null
}

function queryText(query: Call['query']): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) for (const each of value) parameters.append(name, each)
    else if (value !== undefined) parameters.append(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

function baseOf(url: string): string {
  let parsedUrl: URL
  try {
    parsedUrl = new URL(url)
  } catch {
    throw argumentError('url', url, 'the URL of a server, such as http://127.0.0.1:9090')
  }
  if (!/^https?:$/.test(parsedUrl.protocol) || parsedUrl.search !== '' || parsedUrl.hash !== '') {
    throw argumentError('url', url, 'an http or https URL without query, such as http://127.0.0.1:9090')
  }
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}
