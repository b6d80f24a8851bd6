import { failure } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

/**
 * Interval of progress notifications, in ms. Clients that extend their time-out with each notification wait longer
 * than this.
 */
const PROGRESS_MS = 5_000

/** Waits, and reports progress to a client that asked for it: at once, and then every 5 s. */
export function withProgress<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
  return context.wantsProgress ? waitAndReport(context, awaited, wait) : wait()
}

async function waitAndReport<T>(context: ToolContext, awaited: string, wait: () => Promise<T>): Promise<T> {
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
 * Returns the outcome of a request that was ended by a cancellation or a shutdown.
 * @throws the error itself if it is another one
 */
export function cancelledOutcome(error: unknown, { signal }: ToolContext, awaited: string): ToolOutcome {
  if (!signal.aborted || error !== signal.reason) throw error
  return failure(
    `CANCELLED: The call was cancelled, or the server is shutting down, before ${awaited} arrived. A subscriber may have received the request: check that before you repeat it.`,
  )
}
