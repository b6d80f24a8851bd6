import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

import type { ClientTls } from '../tls.ts'
import { tlsFailureOf } from '../tls.ts'
import type { HostMessage } from './host-messages.ts'
import { isObject, linesOf, readHostMessage } from './host-messages.ts'
import type { Session } from './server-connection.ts'
import { eventsOf, requestHeaders, ServerConnection } from './server-connection.ts'

export interface BridgeOptions {
  /** The MCP endpoint of the server. */
  readonly url: URL
  /** @default none */
  readonly token?: string | undefined
  /** @default the authorities of the system, and no certificate */
  readonly tls?: ClientTls | undefined
  /** The messages of the host, one per line. */
  readonly input: Readable
  /** The messages for the host, one per line. */
  readonly output: Writable
  /** Writes a line for people. */
  readonly log: (line: string) => void
}

/** Time for calls in progress to end after the host closed its side, in ms. */
const LAST_MS = 1_000

/** The code of the server for a missing or refused token. */
const UNAUTHENTICATED = '-32010'

/** The most bytes of an error page that are read. */
const MAX_ERROR_BYTES = 1024 * 1024

/** The codes of errors before a request is sent. */
const UNREACHED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

const CODES = { PARSE_ERROR: -32700, INTERNAL_ERROR: -32603 } as const

/**
 * Connects a host that speaks MCP over standard streams to a server that speaks it over HTTP. Messages pass unchanged.
 * The bridge adds the HTTP headers of each message's revision, closes the request of a cancelled call, and answers a
 * call itself if the server cannot be reached.
 */
export class Bridge {
  readonly #options: BridgeOptions
  readonly #server: ServerConnection
  readonly #running = new Map<string, AbortController>()
  readonly #tasks = new Set<Promise<void>>()
  #session: Session = { version: undefined, id: undefined }
  #stopped = false

  constructor(options: BridgeOptions) {
    this.#options = options
    this.#server = new ServerConnection(options.url, options.token, options.tls)
    // The host is gone: it did not read the last answers.
    options.output.once('error', () => {
      this.#server.reset()
      this.stop()
    })
  }

  /** Forwards messages until the host closes the input, or {@link stop} is called. */
  async run(): Promise<void> {
    try {
      for await (const line of linesOf(this.#options.input)) this.#receive(line)
      await Promise.race([Promise.allSettled(this.#tasks), pause(LAST_MS, undefined, { ref: false })])
    } catch (error) {
      if (!this.#stopped) throw error
    } finally {
      this.stop()
      await Promise.allSettled(this.#tasks)
      this.#server.close()
    }
  }

  /** Cancels the calls in progress, and ends the bridge. */
  stop(): void {
    this.#stopped = true
    for (const call of this.#running.values()) call.abort()
    this.#options.input.destroy()
  }

  #receive(line: string): void {
    const message = readHostMessage(line)
    if (message === undefined) {
      void this.#write(errorText(null, CODES.PARSE_ERROR, 'parse error: the line is not JSON'))
      return
    }
    const task = (message.method === 'notifications/cancelled' ? this.#cancel(message) : this.#forward(message))
      .catch((error: unknown) => this.#options.log(`a message was not forwarded: ${reasonOf(error)}`))
      .finally(() => this.#tasks.delete(task))
    this.#tasks.add(task)
  }

  /** Closes the request of a call. In the older revisions only the notification cancels it, so that one goes first. */
  async #cancel(message: HostMessage): Promise<void> {
    const call = this.#running.get(keyOf(message.params?.['requestId']))
    try {
      if (message.revision === undefined) await this.#forward(message)
    } finally {
      call?.abort()
    }
  }

  async #forward(message: HostMessage): Promise<void> {
    const call = new AbortController()
    const key = message.id === undefined ? undefined : keyOf(message.id)
    if (key !== undefined) this.#running.set(key, call)
    try {
      const answer = await this.#server.post(message.text, requestHeaders(message, this.#session), call.signal)
      await this.#deliver(message, answer)
    } catch (error) {
      if (!call.signal.aborted) await this.#fail(message, this.#failureOf(error))
    } finally {
      if (key !== undefined && this.#running.get(key) === call) this.#running.delete(key)
    }
  }

  async #deliver(message: HostMessage, answer: IncomingMessage): Promise<void> {
    const { statusCode = 0, headers } = answer
    const type = headers['content-type'] ?? ''
    if (statusCode < 200 || statusCode > 299) {
      await this.#refuse(message, statusCode, await readText(answer, MAX_ERROR_BYTES))
      return
    }
    if (type.startsWith('text/event-stream')) {
      for await (const data of eventsOf(answer)) await this.#answer(message, data, headers['mcp-session-id'])
      return
    }
    const text = await readText(answer)
    if (text !== '') await this.#answer(message, this.#readable(text), headers['mcp-session-id'])
  }

  #answer({ method }: HostMessage, text: string, sessionId: string | string[] | undefined): Promise<void> {
    if (method === 'initialize') this.#begin(text, sessionId)
    return this.#write(text)
  }

  /** Keeps the revision and the session id that the server chose. */
  #begin(text: string, sessionId: string | string[] | undefined): void {
    const { result } = objectIn(text)
    if (!isObject(result)) return
    const version = result['protocolVersion']
    this.#session = {
      version: typeof version === 'string' ? version : undefined,
      id: typeof sessionId === 'string' ? sessionId : undefined,
    }
  }

  /** Passes a JSON-RPC error on, with the id of the request if the server could not read it. */
  async #refuse(message: HostMessage, status: number, text: string): Promise<void> {
    if (status === 401) this.#options.log(this.#tokenRemedy(`HTTP ${status}`))
    const { error, id } = objectIn(text)
    if (!isObject(error)) await this.#fail(message, `HTTP ${status} from ${this.#options.url.href}`)
    else if (message.id === undefined) this.#options.log(`HTTP ${status}: ${String(error['message'])}`)
    else if (id === message.id) await this.#write(this.#readable(text))
    else await this.#write(this.#readable(JSON.stringify({ jsonrpc: '2.0', id: message.id, error })))
  }

  /** Adds the remedy to an error about the token: a host shows the message to a person. */
  #readable(text: string): string {
    if (text.length > MAX_ERROR_BYTES || !text.includes(UNAUTHENTICATED)) return text
    const { error, ...rest } = objectIn(text)
    if (!isObject(error) || String(error['code']) !== UNAUTHENTICATED) return text
    return JSON.stringify({ ...rest, error: { ...error, message: this.#tokenRemedy(error['message']) } })
  }

  #tokenRemedy(reason: unknown): string {
    const problem = this.#options.token ? 'the server refuses the token' : 'the server requires a token'
    return `${problem} (${String(reason)}): set SIGNALBOX_TOKEN, or Token in the settings of the extension`
  }

  async #fail({ id }: HostMessage, reason: string): Promise<void> {
    this.#options.log(reason)
    if (id !== undefined) await this.#write(errorText(id, CODES.INTERNAL_ERROR, reason))
  }

  #failureOf(error: unknown): string {
    const { href } = this.#options.url
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (UNREACHED.has(code)) return `cannot reach ${href} (${code}): start the server, or correct the URL`
    const tls = tlsFailureOf(error)
    if (tls !== undefined) return `cannot reach ${href} (${tls.code}): ${tls.text}`
    return `no complete answer from ${href} (${reasonOf(error)}): the server may have executed the call`
  }

  async #write(text: string): Promise<void> {
    const { output } = this.#options
    // Line breaks are possible only between the tokens of JSON, where a blank has the same meaning.
    const line = `${text.replaceAll(/[\r\n]+/g, ' ')}\n`
    if (output.writable && !output.write(line)) await once(output, 'drain').catch(() => {})
  }
}

function keyOf(id: unknown): string {
  return JSON.stringify(id) ?? ''
}

function errorText(id: string | number | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** @param maxBytes Closes the connection after this many bytes. @default no limit */
async function readText(answer: IncomingMessage, maxBytes = Infinity): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
