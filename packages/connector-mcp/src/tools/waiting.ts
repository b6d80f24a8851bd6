import { failure } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

/** Clients that prolong their own time-out with each sign of progress wait longer than this in between. */
const PROGRESS_MS = 5_000

/** Waits, and tells a client that asked for it for what: at once, and then every 5 s (M6). */
export function withProgress<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
  return context.wantsProgress ? waitAndTell(context, awaited, wait) : wait()
}

async function waitAndTell<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
  context.progress(`waiting for ${awaited}`)
  const timer = setInterval(() => context.progress(`still waiting for ${awaited}`), PROGRESS_MS)
  timer.unref()
  try {
    return await wait()
  } finally {
    clearInterval(timer)
  }
}

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
