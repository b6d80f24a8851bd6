import type { ClientContext } from '../client-context.ts'
import { SignalboxError } from '../errors.ts'
import type { Answer } from '../transport.ts'
import { registryFailure } from './agent-failure.ts'

/** Returns `true` for an error of the server with this code. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof SignalboxError && error.code === code
}

/** The options of a call of `/agents`. */
export interface RegistryCallOptions {
  readonly signal?: AbortSignal | undefined
  /** The time that the server may wait, in ms. @default 0 */
  readonly waitMs?: number | undefined
}

/** Calls a route below `/agents/`, which may be repeated. @throws SignalboxError, or the reason of the signal */
export function registryCall(
  { transport }: Pick<ClientContext, 'transport'>,
  path: string,
  body: object | string,
  options: RegistryCallOptions = {},
): Promise<Answer> {
  const headers = { 'Content-Type': 'application/json' }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const call = { method: 'POST', path: `/agents/${path}`, headers, body: text, repeatable: true, ...options } as const
  return transport.call(call, registryFailure)
}
