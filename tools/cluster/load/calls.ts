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

/** An MCP client behind a balancer: another connection after some calls, and after each failure. */
export class RovingMcp {
  readonly #base: string
  #client: McpClient | undefined
  #left = 0

  constructor(base: string) {
    this.#base = base
  }

  /** @throws Refused, or another Error when there was no answer */
  async call(name: string, args: Readonly<Record<string, unknown>>, milliseconds: number): Promise<ToolResult> {
    if (this.#left-- <= 0) this.close()
    try {
      return await within(this.#call(name, args), milliseconds)
    } catch (error) {
      this.close()
      throw error instanceof ToolError ? refusedTool(error) : error
    }
  }

  async #call(name: string, args: Readonly<Record<string, unknown>>): Promise<ToolResult> {
    this.#client ??= await McpClient.open(this.#base)
    return this.#client.call(name, args)
  }

  close(): void {
    this.#client?.close()
    this.#client = undefined
    this.#left = CALLS
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
