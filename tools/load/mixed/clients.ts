import { setTimeout as pause } from 'node:timers/promises'

import { askJson, HttpError } from '@signalbox/testkit/loopback'
import type { ToolResult } from '@signalbox/testkit/mcp-client'
import { McpClient, ToolError } from '@signalbox/testkit/mcp-client'

import type { RecoveryWatch } from '../../cluster/recovery-watch.ts'
import type { Ledger } from '../ledgers.ts'

/** The load's view of the run. */
export interface Scene {
  /** The balancer's address. */
  readonly front: string
  readonly watch: RecoveryWatch
  /** The times in which a node was frozen: a client of that node then waits for the disaster, not for the broker. */
  readonly frozenNodes: Periods
  /** The times in which a nats-server was killed or frozen. */
  readonly struckServers: Periods
  /** The factor by which the pauses of the clients are longer. @default 1 */
  readonly pace?: number | undefined
}

/** One or several related kinds of load, with their ledgers. */
export interface Load {
  readonly ledgers: readonly Ledger[]
  /** Starts the clients. */
  start(): Promise<void>
  /** Runs once through the node at this address; rejects on failure. */
  probe(node: string): Promise<void>
  /** Stops all clients. */
  stop(): Promise<void>
  /** Waits for outstanding messages and closes the ledgers. `nodes` are the addresses of all nodes. */
  settle(nodes: readonly string[]): Promise<void>
}

/** The time-out of a client, in milliseconds; the broker answers earlier. */
export const CALL_MS = 10_000
/**
 * The time after which a client with independent calls starts a concurrent one, in milliseconds: new users keep
 * arriving.
 */
const BESIDE_MS = 1_000
const MAX_BESIDE = 10
/** The pause after a failure, in milliseconds. */
const RETRY_MS = 100
/** The allowed excess over the time-out of an answer, for a busy machine, in milliseconds. */
const LATE_MS = 5_000
const UNCLEAR = /\binternal\b|^no code\b|^HTTP \d/i

/** Pace and limits of the calls of a client. */
interface ClientOptions {
  /** The pause between two calls, in milliseconds. */
  readonly pauseMs: number
  /** The time within which there must be an answer or a closed connection, in milliseconds. @default not checked */
  readonly boundMs?: number
  /** True if each call waits for the previous one, without a limit. @default false */
  readonly patient?: boolean
}

/** Clients that each repeat a call and keep the ledger. */
export class Clients {
  readonly #ledger: Ledger
  readonly #scene: Scene
  readonly #stopped = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor(ledger: Ledger, scene: Scene) {
    this.#ledger = ledger
    this.#scene = scene
  }

  add(name: string, options: ClientOptions, call: () => Promise<void>): void {
    this.#scene.watch.join(this.#ledger.kind, name)
    this.#run(this.#repeat(name, options, call))
  }

  /** Repeats the step until the clients are stopped; it is not a client, and not in the ledger. */
  beside(step: () => Promise<void>): void {
    const repeat = async (): Promise<void> => {
      while (!this.stopped.aborted) await step().catch(() => pause(RETRY_MS))
    }
    this.#run(repeat())
  }

  get stopped(): AbortSignal {
    return this.#stopped.signal
  }

  #run(work: Promise<unknown>): void {
    this.#running.add(work)
    void work.finally(() => this.#running.delete(work))
  }

  async #repeat(name: string, options: ClientOptions, call: () => Promise<void>): Promise<void> {
    let under = 0
    while (!this.stopped.aborted) {
      under++
      const calling = this.once(name, call, options.boundMs).finally(() => under--)
      this.#run(calling)
      const patient = options.patient === true || under >= MAX_BESIDE
      const done = await (patient ? calling : Promise.race([calling, pause(BESIDE_MS, true, { ref: false })]))
      await pause(done ? options.pauseMs * (this.#scene.pace ?? 1) : RETRY_MS)
    }
  }

  /** Runs one call and records it in the ledger. Resolves with `true` if it succeeded. */
  async once(name: string, call: () => Promise<void>, boundMs?: number): Promise<boolean> {
    const ledger = this.#ledger
    const begunAt = performance.now()
    ledger.attempted++
    let done = false
    try {
      await call()
      ledger.acknowledged++
      done = true
      this.#scene.watch.succeeded(ledger.kind, name, begunAt)
    } catch (error) {
      if (!(error instanceof Refused)) ledger.unknown++
      else {
        ledger.refuse(error.code)
        if (UNCLEAR.test(error.message)) ledger.add('unclear', error.message)
      }
    }
    if (boundMs !== undefined) this.checkBound(name, begunAt, boundMs)
    return done
  }

  /** Records a broken promise if the silence exceeded the bound, not counting the time in which a node was frozen. */
  checkBound(what: string, since: number, boundMs: number): void {
    const now = performance.now()
    const silentMs = now - since - this.#scene.frozenNodes.overlapMs(since, now)
    if (silentMs > boundMs + LATE_MS) {
      this.#ledger.add('hung', `${what}: silent for ${Math.round(silentMs)} ms, ${boundMs} are allowed`)
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#running)
  }
}

/** The server answered with an error. Any other rejection of a call means that there was no answer. */
export class Refused extends Error {
  override readonly name = 'Refused'
  /** The product's code, or the HTTP status if there is none. */
  readonly code: string

  constructor(code: string, message: string) {
    super(`${code}: ${message}`)
    this.code = code
  }
}

/** Rejects when the time is over; the work continues. */
export async function within<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer in ${milliseconds} ms`)), milliseconds)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}

/** Calls a tool on a new connection to this address. */
export async function callTool(
  base: string,
  name: string,
  args: Readonly<Record<string, unknown>>,
  milliseconds: number,
): Promise<ToolResult> {
  const mcp = new RovingMcp(base)
  try {
    return await mcp.call(name, args, milliseconds)
  } finally {
    mcp.close()
  }
}

/** The number of calls on one connection before the client reconnects. */
const CALLS = 20

/**
 * An MCP client behind a balancer: it reconnects after a number of calls, after each failure, and for a concurrent
 * call.
 */
export class RovingMcp {
  readonly #base: string
  readonly #idle: { readonly client: McpClient; left: number }[] = []
  #closed = false

  /** The signal closes the client. */
  constructor(base: string, stopped?: AbortSignal) {
    this.#base = base
    stopped?.addEventListener('abort', () => this.close(), { once: true })
  }

  /** @throws Refused, or another Error if there was no answer */
  async call(name: string, args: Readonly<Record<string, unknown>>, milliseconds: number): Promise<ToolResult> {
    const { client, left } = this.#idle.pop() ?? { client: await McpClient.open(this.#base), left: CALLS }
    try {
      const result = await within(client.call(name, args), milliseconds)
      if (left > 1 && !this.#closed) this.#idle.push({ client, left: left - 1 })
      else client.close()
      return result
    } catch (error) {
      client.close()
      throw error instanceof ToolError ? refusedTool(error) : error
    }
  }

  /** Calls in flight complete. */
  close(): void {
    this.#closed = true
    for (const { client } of this.#idle.splice(0)) client.close()
  }
}

function refusedTool({ message }: ToolError): Refused {
  const code = /^([A-Z_]+): /.exec(message)?.[1] ?? /"code":(-?\d+)/.exec(message)?.[1] ?? 'no code'
  return new Refused(code, message)
}

interface ErrorBody {
  readonly error?: unknown
  readonly message?: string
  readonly data?: { readonly code?: string } | null
}

/** Sends a POST or GET on a new connection. @throws Refused, or another Error if there was no answer */
export async function ask(url: string, milliseconds: number, body?: object, type = 'application/json') {
  try {
    const request = body === undefined ? {} : { body, headers: { 'content-type': type } }
    return await askJson(url, { timeoutMs: milliseconds, ...request })
  } catch (error) {
    throw error instanceof HttpError ? refusedHttp(error) : error
  }
}

function refusedHttp({ status, text }: HttpError): Refused {
  try {
    const { error, data, message = text } = JSON.parse(text) as ErrorBody
    return new Refused(data?.code ?? (typeof error === 'string' ? error : `HTTP ${status}`), message)
  } catch {
    return new Refused(`HTTP ${status}`, text)
  }
}

/** A message from a tool, as `/ce` shows it: its body is text that is not JSON. */
export interface Frame {
  readonly data: string
  readonly time: string
  /** Present on commands and queries. */
  readonly brokerrequestid?: string
}

export function bodyOf({ data }: Pick<Frame, 'data'>): string {
  return data
}

/** Periods, by the clock of `performance.now()`, in which a process was frozen or struck. */
export class Periods {
  readonly #periods: { readonly from: number; to: number }[] = []

  begin(at = performance.now()): void {
    this.#periods.push({ from: at, to: Number.POSITIVE_INFINITY })
  }

  /** Ends the period that began last. */
  end(at = performance.now()): void {
    const last = this.#periods.at(-1)
    if (last !== undefined) last.to = at
  }

  /** Returns the part of the time from `from` to `to` that lies in periods, in milliseconds. */
  overlapMs(from: number, to: number): number {
    return this.#periods.reduce(
      (sum, period) => sum + Math.max(0, Math.min(to, period.to) - Math.max(from, period.from)),
      0,
    )
  }
}
