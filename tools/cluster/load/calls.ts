import type { ToolResult } from '../../harness/mcp.ts'
import { McpClient, ToolError } from '../../harness/mcp.ts'

/** The server answered with an error. Whatever else a call rejects with is no answer. */
export class Refused extends Error {
  override readonly name = 'Refused'
  /** The product's code, or the HTTP status where there is none. */
  readonly code: string

  constructor(code: string, message: string) {
    super(`${code}: ${message}`)
    this.code = code
  }
}

/** Rejects when the work is not done in time; the work goes on. */
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

/** A tool's call on a connection of its own, at this address. */
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

/** How many calls go over one connection before another node is asked. */
const CALLS = 20

/** An MCP client behind a balancer: another connection after some calls, after each failure, and for a call beside another. */
export class RovingMcp {
  readonly #base: string
  readonly #idle: { readonly client: McpClient; left: number }[] = []
  #closed = false

  constructor(base: string) {
    this.#base = base
  }

  /** @throws Refused, or another Error when there was no answer */
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

  /** Calls under way come to their end. */
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

/** A POST or GET on a connection of its own. @throws Refused, or another Error when there was no answer */
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
