import { isObject, parsed, textOf } from './cloud-event.ts'
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
  return { data, message: textOf(message) ?? '', rejected: is_error === true }
}

/** Returns the error of an answer of `/ce`. */
export function ceFailure(answer: Answer): SignalboxError {
  const body = parsed(answer.text)
  const data = isObject(body) ? body['data'] : undefined
  const code = isObject(data) ? textOf(data['code']) : undefined
  if (!isObject(body) || !isObject(data) || code === undefined) return statusFailure(answer)
  const { code: _code, problems, ...details } = data
  return new SignalboxError(code, textOf(body['message']) ?? code, {
    status: answer.status,
    details,
    problems: problemsOf(problems),
    retryAfterMs: retryAfter(answer.headers),
  })
}

/** Returns the problems that a server lists. */
export function problemsOf(list: unknown): SignalboxError['problems'] {
  if (!Array.isArray(list)) return []
  return list.filter(isObject).map(problemOf)
}

function problemOf(problem: Readonly<Record<string, unknown>>): Problem {
  const name = textOf(problem['parameter']) ?? textOf(problem['argument']) ?? textOf(problem['field'])
  const given = textOf(problem['given'])
  return {
    ...(name === undefined ? {} : { name }),
    ...(given === undefined ? {} : { given }),
    allowed: textOf(problem['allowed']) ?? '',
  }
}
