import { isObject, parsed, asString } from '../cloud-event.ts'
import { SignalboxError } from '../errors.ts'
import { problemsOf } from '../http-calls.ts'
import type { Answer } from '../transport.ts'
import { retryAfter, statusFailure } from '../transport.ts'

/** Returns the error of a JSON-RPC answer of `/a2a`; `undefined` for a result. */
export function rpcFailure(answer: Answer): SignalboxError | undefined {
  const body = parsed(answer.text)
  if (!isObject(body)) return statusFailure(answer)
  if (isObject(body['result'])) return undefined
  return isObject(body['error']) ? rpcError(body['error'], answer.status, retryAfter(answer)) : statusFailure(answer)
}

/** Returns the error of a JSON-RPC error object. Its reason is the code, if the gateway names one. */
export function rpcError(
  error: Readonly<Record<string, unknown>>,
  status: number,
  retryAfterMs?: number,
): SignalboxError {
  const data = error['data']
  const infos = Array.isArray(data) ? data.filter(isObject) : []
  const info = infos.find((each) => asString(each['reason']) !== undefined)
  const metadata = info !== undefined && isObject(info['metadata']) ? info['metadata'] : {}
  const message = asString(error['message']) ?? 'the agent answered with an error'
  return new SignalboxError(asString(info?.['reason']) ?? 'AGENT_ERROR', message, {
    status,
    details: { ...metadata, code: error['code'], data },
    // The gateway asks for a repeat only where one can help, and says if the agent has received the request.
    retryable: metadata['executed'] === 'false' && infos.some((each) => each['retryDelay'] !== undefined),
    retryAfterMs,
  })
}

/** Returns the error of an answer of `/agents`. */
export function registryFailure(answer: Answer): SignalboxError | undefined {
  const body = parsed(answer.text)
  if (answer.status === 200 && typeof body === 'object' && body !== null) return undefined
  const code = isObject(body) ? asString(body['error']) : undefined
  if (!isObject(body) || code === undefined) return statusFailure(answer)
  return new SignalboxError(code, asString(body['message']) ?? code, {
    status: answer.status,
    problems: problemsOf(body['details']),
    retryAfterMs: retryAfter(answer),
  })
}
