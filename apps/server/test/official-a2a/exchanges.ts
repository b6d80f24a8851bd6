import { vi } from 'vitest'

import type { Exchange } from './exchange.ts'
import { restMethod, restProblems } from './rest-exchanges.ts'
import { RESULTS_03, SCHEMA_03 } from './strict/schema-0.3.ts'
import { RESULTS_10, SCHEMA_10 } from './strict/schema-1.0.ts'
import { problems } from './strict/validate.ts'

/** Notes every call of this process's `fetch` until the mocks are restored. */
export function recordExchanges(): { take: () => Exchange[] } {
  let exchanges: Exchange[] = []
  const real = globalThis.fetch
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const response = await real(input, init)
    const answer = response.clone().text()
    answer.catch(() => {})
    exchanges.push({
      url: input instanceof Request ? input.url : String(input),
      method: init?.method ?? 'GET',
      request: typeof init?.body === 'string' ? init.body : '',
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
      answer,
    })
    return response
  })
  return {
    take: () => {
      const taken = exchanges
      exchanges = []
      return taken
    },
  }
}

interface Envelope {
  readonly id: unknown
  readonly method: string
}

/** Returns what readers that are stricter than the SDK for JavaScript would refuse in an answer. */
export async function answerProblems(exchange: Exchange): Promise<readonly string[]> {
  const { request, status, contentType, answer } = exchange
  const operation = restMethod(exchange)
  if (operation !== undefined) return restProblems(operation, exchange)
  let text: string
  try {
    text = await answer
  } catch {
    return []
  }
  const { id, method } = JSON.parse(request) as Envelope
  const stream = contentType.startsWith('text/event-stream')
  const found = status === 200 ? [] : [`HTTP ${status}`]
  if (!stream) return [...found, ...envelopeProblems(text, id, method)]
  const frames = text.split('\n\n')
  if (frames.pop() !== '') found.push('the last frame is not complete')
  for (const frame of frames) {
    if (frame.startsWith(':')) continue
    const [, data] = /^data: ([^\r\n]*)$/.exec(frame) ?? []
    if (data === undefined) found.push(`not one line of data: ${frame}`)
    else found.push(...envelopeProblems(data, id, method))
  }
  return found
}

function envelopeProblems(text: string, id: unknown, method: string): readonly string[] {
  const envelope = JSON.parse(text) as Readonly<Record<string, unknown>>
  const found: string[] = []
  if (envelope['jsonrpc'] !== '2.0') found.push(`jsonrpc is ${String(envelope['jsonrpc'])}`)
  if (envelope['id'] !== id) found.push(`id is ${JSON.stringify(envelope['id'])} instead of ${JSON.stringify(id)}`)
  const { jsonrpc: _, id: __, ...outcome } = envelope
  const [[name, value] = ['nothing', undefined], ...more] = Object.entries(outcome)
  if (more.length > 0) found.push(`${name} and ${more.map(([other]) => other).join(', ')}`)
  if (name === 'result') return [...found, ...resultProblems(method, value)]
  if (name === 'error') return [...found, ...errorProblems(method, value)]
  return [...found, `${name} is neither result nor error`]
}

function resultProblems(method: string, result: unknown): readonly string[] {
  const type10 = RESULTS_10[method]
  if (type10 !== undefined) return problems(SCHEMA_10, type10, result)
  const type03 = RESULTS_03[method]
  return type03 === undefined ? [] : problems(SCHEMA_03, type03, result)
}

/** The details of an error in A2A 1.0 are an array of typed objects, as the SDK for Go demands. */
function errorProblems(method: string, error: unknown): readonly string[] {
  const { code, message, data, ...rest } = error as Readonly<Record<string, unknown>>
  const found = Object.keys(rest).map((name) => `error.${name} is unknown`)
  if (!Number.isInteger(code)) found.push(`error.code is ${String(code)}`)
  if (typeof message !== 'string') found.push('error.message is not a string')
  if (!(method in RESULTS_10) || data === undefined) return found
  if (!Array.isArray(data)) return [...found, `error.data is ${JSON.stringify(data)}`]
  for (const detail of data as readonly Readonly<Record<string, unknown>>[]) {
    const { '@type': type, metadata } = detail
    if (typeof type !== 'string') found.push(`a detail without @type: ${JSON.stringify(detail)}`)
    const values = Object.values(metadata ?? {})
    if (values.some((each) => typeof each !== 'string')) found.push(`metadata: ${JSON.stringify(metadata)}`)
  }
  return found
}
