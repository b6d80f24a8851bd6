import { writeFileSync } from 'node:fs'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestListener } from 'node:http'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'

import { serveHttp } from '@signalbox/testkit/loopback'
import { toolCall } from '@signalbox/testkit/mcp-client'
import { SignJWT } from 'jose'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** After this many milliseconds without an answer the connection is broken. @default 60000 */
  readonly timeoutMs?: number
}

/** The open requests and connections, each of which can be aborted. */
interface Open {
  destroy(): unknown
}

/** The identity that a caller presents. */
export interface Identity {
  readonly name: string
  /** The local address of its connections. */
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
}

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A client of the server under attack, with its own address and any number of connections. */
export class Caller implements Disposable {
  readonly identity: Identity
  readonly http: string
  readonly api: string
  readonly #agent: Agent
  readonly #open = new Set<Open>()

  constructor(http: string, api: string, identity: Identity) {
    this.identity = identity
    this.http = http
    this.api = api
    this.#agent = new Agent({ keepAlive: true, localAddress: identity.address })
  }

  /** Sends a request and reads the answer. Rejects when the connection breaks. */
  async ask(method: string, path: string, options: AskOptions = {}): Promise<Answer> {
    const response = await this.#send(method, path, options, this.#agent)
    let text = ''
    response.setEncoding('utf8')
    for await (const part of response) text += String(part)
    return { status: response.statusCode ?? 0, headers: response.headers, text }
  }

  /** Posts JSON. A large body is best a buffer: each text is encoded again, which slows the other caller's core. */
  post(path: string, body: string | Buffer | object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    return this.ask('POST', path, { headers: { ...JSON_TYPE, ...headers }, body: text })
  }

  tool(name: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    return this.post('/mcp', toolCall(name, args))
  }

  /** Opens a response and reads only its head, until it is resumed. */
  async stream(path: string, options: AskOptions & { readonly method?: string } = {}): Promise<HeldResponse> {
    const headers = { accept: 'text/event-stream', ...options.headers }
    const response = await this.#send(options.method ?? 'GET', path, { ...options, headers }, false)
    return new HeldResponse(response)
  }

  /**
   * Opens a bare connection to the shared listener; resolves when it is connected, or with `undefined` if it was
   * refused.
   */
  socket(): Promise<Socket | undefined> {
    const { hostname, port } = new URL(this.http)
    return new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress: this.identity.address })
      this.#keep(socket, 'close')
      socket.on('error', () => resolve(undefined))
      socket.once('connect', () => resolve(socket))
    })
  }

  /** Breaks every open connection. */
  [Symbol.dispose](): void {
    for (const open of this.#open) open.destroy()
    this.#agent.destroy()
  }

  #send(method: string, path: string, options: AskOptions, agent: Agent | false): Promise<IncomingMessage> {
    const { headers = {}, body, timeoutMs = 60_000 } = options
    const url = new URL(path, this.http)
    return new Promise((resolve, reject) => {
      const asked = request(url, {
        method,
        agent,
        localAddress: this.identity.address,
        timeout: timeoutMs,
        headers: {
          ...this.identity.headers,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
          ...headers,
        },
      })
      this.#keep(asked, 'close')
      asked.on('error', reject)
      asked.once('timeout', () => asked.destroy(new Error('no answer in time')))
      asked.once('response', resolve)
      asked.end(body)
    })
  }

  #keep(open: ClientRequest | Socket, end: 'close'): void {
    this.#open.add(open)
    open.once(end, () => this.#open.delete(open))
  }
}

/** A response whose body is not read until a caller asks for it. */
export class HeldResponse {
  readonly status: number
  readonly #response: IncomingMessage

  constructor(response: IncomingMessage) {
    this.#response = response
    this.status = response.statusCode ?? 0
    // Many attacks break connections on purpose.
    response.on('error', () => {})
  }

  /** True if the response is a stream of events. */
  get isStream(): boolean {
    return this.status === 200 && this.#response.headers['content-type']?.startsWith('text/event-stream') === true
  }

  /** Reads the rest of the body; resolves with its text when it has ended or broken. */
  async rest(): Promise<string> {
    let text = ''
    this.#response.setEncoding('utf8')
    try {
      for await (const part of this.#response) text += String(part)
    } catch {}
    return text
  }

  /** Reads and drops all further data. */
  drain(): void {
    this.#response.resume()
  }

  close(): void {
    this.#response.destroy()
  }
}

interface Said {
  readonly error?: { readonly code?: number } | boolean
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] }
  readonly is_error?: boolean
  readonly data?: { readonly code?: string } | null
}

/** Summarizes an answer in a word: its status, and the code of an error. */
export function outcomeOf({ status, text }: Pick<Answer, 'status' | 'text'>): string {
  const code = text.length > 100_000 || !/^\s*\{/.test(text) ? undefined : codeIn(text)
  return code === undefined ? String(status) : `${status} ${code}`
}

function codeIn(text: string): string | undefined {
  let said: Said
  try {
    said = JSON.parse(text) as Said
  } catch {
    return undefined
  }
  if (typeof said.error === 'object') return String(said.error.code)
  if (said.result?.isError === true) return /^[A-Z_]+/.exec(said.result.content?.[0]?.text ?? '')?.[0] ?? 'isError'
  if (said.is_error === true || said.error === true) return said.data?.code ?? 'error'
  return undefined
}

/** Summarizes in a word why a request got no answer. */
export function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

const SECRET = 'a secret of the attack tool, of 32 bytes or more'

/** The channels and agents that attackers may use under the policy. */
const ATTACK_PREFIX = 'attack'

/** The identities of callers: tokens on the guarded server, addresses on the default one. */
export class Identities {
  readonly #kind: ServerKind
  readonly #tokens = new Map<string, string>()

  private constructor(kind: ServerKind) {
    this.#kind = kind
  }

  /** @param attackers The largest number of attackers */
  static async create(kind: ServerKind, attackers: number): Promise<Identities> {
    const identities = new Identities(kind)
    if (kind === 'default') return identities
    const named = ['honest', 'nobody', ...Array.from({ length: attackers }, (_, index) => attackerName(index))]
    for (const name of named) identities.#tokens.set(name, await token(name, []))
    identities.#tokens.set('operator', await token('operator', ['Admin']))
    identities.#tokens.set('viewer', await token('viewer', ['ReadOnly']))
    return identities
  }

  attacker(index: number): Identity {
    return this.#identity(attackerName(index), `127.1.${Math.floor(index / 200)}.${2 + (index % 200)}`)
  }

  /** The other caller. */
  get honest(): Identity {
    return this.#identity('honest', '127.0.0.2')
  }

  /** The caller that scrapes the metrics. */
  get operator(): Identity {
    return this.#identity('operator', '127.0.0.1')
  }

  /** An attacker with read permission on the management listener. */
  get viewer(): Identity {
    return this.#identity('viewer', '127.4.0.1')
  }

  /** A caller with a valid token and no permission in the policy. On the default server, any other attacker. */
  get nobody(): Identity {
    return this.#identity('nobody', '127.2.0.1')
  }

  /** A caller without a token. */
  get stranger(): Identity {
    return { name: 'stranger', address: '127.3.0.1', headers: {} }
  }

  #identity(name: string, address: string): Identity {
    if (this.#kind === 'default') return { name, address, headers: {} }
    // Limits count by ClientID there, but connections count by address.
    return { name, address, headers: { authorization: `Bearer ${this.#tokens.get(name) ?? ''}` } }
  }
}

/** The settings of the guarded server: attackers may use the names with their prefix, the honest caller its own. */
export function guardedSettings(folder: string): Readonly<Record<string, string>> {
  const policyFile = join(folder, 'policy.json')
  const everything = { actions: '*', patterns: '*', effect: 'allow' }
  const rules = [
    { clients: 'honest', channels: 'honest*', ...everything },
    { clients: 'attacker-*', channels: `${ATTACK_PREFIX}*`, ...everything },
  ]
  writeFileSync(policyFile, JSON.stringify({ rules }))
  return {
    AUTHENTICATION_ENABLE: 'true',
    AUTHENTICATION_SECRET: SECRET,
    AUTHORIZATION_ENABLE: 'true',
    AUTHORIZATION_POLICY_FILE: policyFile,
    API_AUTHENTICATION_ENABLE: 'true',
  }
}

function attackerName(index: number): string {
  return `attacker-${index}`
}

function token(name: string, roles: readonly string[]): Promise<string> {
  return new SignJWT({ ClientID: name, roles })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('6h')
    .sign(Buffer.from(SECRET))
}

/** Starts an agent in this process; use it until the end of the attack. */
export async function startAgent(listener: RequestListener): Promise<Disposable & { readonly url: string }> {
  const server = await serveHttp(listener)
  return { url: `${server.url}/rpc`, [Symbol.dispose]: () => void server[Symbol.asyncDispose]() }
}

/** Starts an agent that answers every request with this text. */
export function startAnsweringAgent(body: string): Promise<Disposable & { readonly url: string }> {
  return startAgent((request, response) => {
    void consume(request).then(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body))
  })
}

/** Reads a request's body; an aborted body is empty. */
export async function consume(request: IncomingMessage): Promise<string> {
  try {
    return await readText(request)
  } catch {
    return ''
  }
}

/** Registers an agent; resolves with the answer. */
export function register(caller: Caller, agentId: string, url: string, card: object = {}): Promise<Answer> {
  return caller.post('/agents/register', { agent_id: agentId, name: agentId, url, ...card })
}

/** Registers an agent, which must succeed. */
export async function registered(caller: Caller, agentId: string, url: string, card: object = {}): Promise<void> {
  const { status, text } = await register(caller, agentId, url, card)
  if (status !== 200) throw new Error(`the agent was not registered: ${status} ${text.slice(0, 300)}`)
}

/** `default`: the default settings. `guarded`: tokens, a policy, roles for operators, and a heap of 512 MB. */
export type ServerKind = 'default' | 'guarded'

export const SERVER_KINDS: readonly ServerKind[] = ['default', 'guarded']

/** The storage of the server under attack, as the setting `ENGINE` names it. */
export type EngineName = 'embedded' | 'nats'

export const ENGINE_NAMES: readonly EngineName[] = ['embedded', 'nats']
