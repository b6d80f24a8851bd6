import type { Fetch } from '@signalbox/client'
import { SignalboxError } from '@signalbox/client'

import type { JsonObject } from './json.ts'
import { isObject, toText } from './json.ts'
import type { ClientTls, CommandTls } from './tls.ts'

/** The longest time of a call, in ms. */
const TIMEOUT_MS = 30_000

interface ManagementClientOptions {
  readonly url: string
  readonly token: string | undefined
  readonly tls: CommandTls
  readonly signal: AbortSignal
}

/** Calls the management API. */
export class ManagementClient {
  readonly url: string
  readonly tls: ClientTls | undefined
  readonly #token: string | undefined
  readonly #signal: AbortSignal
  readonly #fetch: Fetch

  constructor({ url, token, tls, signal }: ManagementClientOptions) {
    this.url = url
    this.tls = tls.tls
    this.#token = token
    this.#signal = signal
    this.#fetch = tls.fetch
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }
  }

  /** Returns the data of a route. @throws SignalboxError */
  get(path: string, query: Readonly<Record<string, string | number | undefined>> = {}): Promise<JsonObject> {
    const parameters = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
    const text = parameters.toString()
    return this.#call(text === '' ? path : `${path}?${text}`, {})
  }

  /** Runs an action, and returns its data. @throws SignalboxError */
  act(action: string, body: JsonObject): Promise<JsonObject> {
    return this.#call(`/api/actions/${action}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  async #call(
    path: string,
    { headers = {}, ...init }: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
  ): Promise<JsonObject> {
    const limit = AbortSignal.timeout(TIMEOUT_MS)
    let status: number
    let text: string
    try {
      const response = await this.#fetch(`${this.url}${path}`, {
        ...init,
        headers: { ...headers, ...this.headers },
        redirect: 'error',
        signal: AbortSignal.any([limit, this.#signal]),
      })
      status = response.status
      text = await response.text()
    } catch (error) {
      this.#signal.throwIfAborted()
      if (limit.aborted)
        throw new SignalboxError('TIMEOUT', `no answer from ${this.url}${path} in time`, { cause: error })
      throw new SignalboxError(
        'UNREACHABLE',
        `${this.url} cannot be reached${causeOf(error)}; check that the management listener is at this URL`,
        { cause: error },
      )
    }
    return dataOf(text, status, `${this.url}${path}`)
  }
}

function dataOf(text: string, status: number, url: string): JsonObject {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    body = undefined
  }
  if (!isObject(body) || typeof body['error'] !== 'boolean') {
    throw new SignalboxError(
      status === 404 ? 'NOT_FOUND' : 'RESPONSE_INVALID',
      `${url} answered with HTTP ${status} and no envelope of the management API; check the management URL`,
      { status },
    )
  }
  const data = isObject(body['data']) ? body['data'] : {}
  if (!body['error']) return data
  const code = body['data'] === null ? 'NOT_READY' : toText(data['code'])
  throw new SignalboxError(code, toText(body['error_string']), { status, details: data })
}

/** Returns the code of the connection's error in brackets. */
export function causeOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return ` (${at.code})`
  }
  return ''
}
