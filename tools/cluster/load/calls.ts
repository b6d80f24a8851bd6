import type { ToolResult } from '../../harness/mcp.ts'
import { McpClient, ToolError } from '../../harness/mcp.ts'

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

  constructor(base: string) {
    this.#base = base
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
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { connection: 'close', ...(body !== undefined && { 'content-type': type }) },
    signal: AbortSignal.timeout(milliseconds),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw refusedHttp(response.status, text)
  const answer: unknown = JSON.parse(text)
  return answer
}

function refusedHttp(status: number, text: string): Refused {
  try {
    const { error, data, message = text } = JSON.parse(text) as ErrorBody
    return new Refused(data?.code ?? (typeof error === 'string' ? error : `HTTP ${status}`), message)
  } catch {
    return new Refused(`HTTP ${status}`, text)
  }
}
