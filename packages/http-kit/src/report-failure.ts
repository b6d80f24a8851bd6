import type { HttpRequest } from './http-message.ts'

/** Hooks that may have one for failures. */
interface FailureHooks {
  failed?(error: unknown, request?: HttpRequest): void
}

/** Returns the hook `failed`. Without one, failures go to stderr, in one line each: otherwise they would be lost. */
export function failureHook(hooks: FailureHooks): (error: unknown, request?: HttpRequest) => void {
  return (error, request) => {
    if (hooks.failed === undefined) reportFailure(error, request)
    else hooks.failed(error, request)
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
