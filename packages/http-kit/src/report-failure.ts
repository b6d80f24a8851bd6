import type { HttpRequest } from './http-message.ts'

/** Hooks that may have one for failures. */
export interface FailureHooks {
  failed?(error: unknown, request?: HttpRequest): void
}

/** Returns the hook `failed`. Without one, failures go to stderr, in one line each: otherwise they would be lost. */
export function failureHook(hooks: FailureHooks): (error: unknown, request?: HttpRequest) => void {
  return (error, request) => {
    if (hooks.failed === undefined) reportFailure(error, request)
    else hooks.failed(error, request)
  }
}

/** Returns a hook whose errors are dropped; `undefined` for none. */
export function quietHook<Arguments extends unknown[]>(
  hook: ((...args: Arguments) => void) | undefined,
): ((...args: Arguments) => void) | undefined {
  if (hook === undefined) return undefined
  return (...args) => {
    try {
      hook(...args)
    } catch {}
  }
}

function reportFailure(error: unknown, request: HttpRequest | undefined): void {
  const what = request === undefined ? 'failure' : `request failed: ${request.method} ${request.url?.split('?', 1)[0]}`
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .join(' | ')
  process.stderr.write(`signalbox: ${what}: ${line}\n`)
}
