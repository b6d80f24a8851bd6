import { isObject, objectOf, parsed, asString } from './cloud-event.ts'
import type { Problem } from './errors.ts'
import { SignalboxError } from './errors.ts'
import type { Answer, Call, Transport } from './transport.ts'
import { retryAfter, statusFailure } from './transport.ts'

/** The answer of a route of `/ce`. */
export interface CeAnswer {
  readonly data: unknown
  readonly message: string
  /** `true` if the call worked and its outcome is negative. */
  readonly rejected: boolean
}

/** Calls a route of `/ce`. @throws SignalboxError, or the reason of the signal */
export async function callCe(transport: Transport, call: Call): Promise<CeAnswer> {
  const answer = await transport.call(call, (each) => {
    if (each.status < 300 && isObject(parsed(each.text))) return undefined
    return ceFailure(each)
  })
  const body = parsed(answer.text)
  const { data, message, is_error } = isObject(body) ? body : {}
  return { data, message: asString(message) ?? '', rejected: is_error === true }
}

/** Returns the call that sends one event in its JSON form. */
export function eventCall(path: string, body: string, query: Call['query'], signal: AbortSignal): Call {
  return {
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/cloudevents+json' },
    body,
    repeatable: false,
    signal,
    query,
  }
}

/** Returns the error of an answer of `/ce`. */
export function ceFailure(answer: Answer): SignalboxError {
  const body = parsed(answer.text)
  const data = isObject(body) ? body['data'] : undefined
  const code = isObject(data) ? asString(data['code']) : undefined
  if (!isObject(body) || !isObject(data) || code === undefined) return statusFailure(answer)
  const { code: _code, problems, ...details } = data
  return new SignalboxError(code, asString(body['message']) ?? code, {
    status: answer.status,
    details,
    problems: problemsOf(problems),
    retryAfterMs: retryAfter(answer),
  })
}

/** Returns the problems that a server lists. */
export function problemsOf(list: unknown): SignalboxError['problems'] {
  if (!Array.isArray(list)) return []
  return list.filter(isObject).map(problemOf)
}

function problemOf(problem: Readonly<Record<string, unknown>>): Problem {
  const name = asString(problem['parameter']) ?? asString(problem['argument']) ?? asString(problem['field'])
  const given = asString(problem['given'])
  return {
    name,
    given,
    allowed: asString(problem['allowed']) ?? '',
  }
}

/** The revision of MCP without a handshake: each request can go to another node. */
const REVISION = '2026-07-28'

const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: '@signalbox/client', version: '0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** `true` if repeating the call has no second effect. */
  readonly repeatable: boolean
  /** The time for which the call is repeated, in ms. */
  readonly retryForMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Calls a tool at `/mcp`, and returns its structured content. @throws SignalboxError, or the reason of the signal */
export async function callTool(
  transport: Transport,
  { tool, arguments: given, ...options }: ToolCall,
): Promise<Readonly<Record<string, unknown>>> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: given, _meta: META } }
  const answer = await transport.call(
    {
      method: 'POST',
      path: '/mcp',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': REVISION,
        'Mcp-Method': 'tools/call',
        'Mcp-Name': tool,
      },
      body: JSON.stringify(body),
      ...options,
    },
    failureOf,
  )
  return objectOf(resultOf(answer)?.['structuredContent'], `the result of ${tool}`)
}

function resultOf({ text }: Answer): Readonly<Record<string, unknown>> | undefined {
  const body = parsed(text)
  const result = isObject(body) ? body['result'] : undefined
  return isObject(result) ? result : undefined
}

const CODES: Readonly<Record<number, string>> = {
  [-32010]: 'UNAUTHENTICATED',
  [-32011]: 'FORBIDDEN',
  [-32602]: 'ARGUMENT_INVALID',
}

function failureOf(answer: Answer): SignalboxError | undefined {
  const result = resultOf(answer)
  if (result !== undefined) return result['isError'] === true ? toolFailure(result, answer.status) : undefined
  const body = parsed(answer.text)
  const error = isObject(body) ? body['error'] : undefined
  if (!isObject(error)) return statusFailure(answer)
  const message = asString(error['message']) ?? 'the server answered with an error'
  const { status, code: byStatus, retryAfterMs } = statusFailure(answer)
  const data = isObject(error['data']) ? error['data'] : {}
  const code = CODES[Number(error['code'])] ?? (byStatus === 'RESPONSE_INVALID' ? 'INTERNAL' : byStatus)
  return new SignalboxError(code, message, { status, retryAfterMs, problems: problemsOf(data['problems']) })
}

/** Returns the error of a tool: its text begins with the code. */
function toolFailure(result: Readonly<Record<string, unknown>>, status: number): SignalboxError {
  const [first] = Array.isArray(result['content']) ? result['content'] : []
  const text = isObject(first) ? (asString(first['text']) ?? '') : ''
  const [, code, message] = /^([A-Z][A-Z_]+): (.*)$/s.exec(text) ?? []
  const structure = result['structuredContent']
  const problems = problemsOf(isObject(structure) ? structure['problems'] : undefined)
  if (problems.length > 0) return new SignalboxError('ARGUMENT_INVALID', text, { status, problems })
  return new SignalboxError(code ?? 'INTERNAL', message ?? text, { status })
}
