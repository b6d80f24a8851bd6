import { failure } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

/**
 * The outcome of a request that ended because nobody waits for it any more: it was cancelled, or the server shuts down.
 * @throws the error itself when it is another one
 */
export function cancelledOutcome(error: unknown, { signal }: ToolContext, awaited: string): ToolOutcome {
  if (!signal.aborted || error !== signal.reason) throw error
  return failure(
    `CANCELLED: The call was cancelled, or the server is shutting down, before ${awaited} came. The request may have been received: check before you repeat it.`,
  )
}
