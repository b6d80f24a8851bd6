import { failure } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

/** Clients that prolong their own time-out with each sign of progress wait 10 s or more. */
const PROGRESS_MS = 5_000

/** Tells the client what a call waits for: at once, and every 5 s as long as it does (M6). */
export async function withProgress<T>(context: ToolContext, what: string, wait: () => Promise<T>): Promise<T> {
  const started = performance.now()
  context.progress(`waiting for ${what}`)
  const timer = setInterval(() => {
    context.progress(`still waiting for ${what}, ${Math.round((performance.now() - started) / 1000)} s so far`)
  }, PROGRESS_MS)
  timer.unref()
  try {
    return await wait()
  } finally {
    clearInterval(timer)
  }
}

/**
 * The outcome of a request that ended because nobody waits for it any more (cancelled, or the server shuts down).
 * @throws the error itself when it is another one
 */
export function cancelledOutcome(error: unknown, { signal }: ToolContext, what: string): ToolOutcome {
  if (!signal.aborted || error !== signal.reason) throw error
  return failure(
    `CANCELLED: The call was cancelled, or the server is shutting down, before ${what} came. It may have been received: check before you repeat it.`,
  )
}
