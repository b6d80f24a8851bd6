import { setTimeout as delay } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'

/** How often connections that have become idle are closed, so that none keeps a shutdown waiting for its keep-alive. */
const SWEEP_MS = 25

/**
 * Closes a listener: no new connections, calls in flight have `graceMs` to finish, then their connections are cut.
 * `finish` runs when no call is left, or when the time is over: it must end whatever such calls still wait for.
 */
export async function drain(app: FastifyInstance, graceMs: number, finish?: () => Promise<void>): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  const timeUp = new AbortController()
  const closed = app.close()
  try {
    const late = delay(graceMs, true, { signal: timeUp.signal }).catch(() => false)
    if (await Promise.race([late, closed.then(() => false)])) app.server.closeAllConnections()
    await finish?.()
    await closed
  } finally {
    timeUp.abort()
    clearInterval(sweep)
  }
}
