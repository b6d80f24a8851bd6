import { setTimeout as delay } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'

import { closeOtherAddresses } from '../listeners/other-addresses.ts'

/** How often connections that have become idle are closed, so that none keeps a shutdown waiting for its keep-alive. */
const SWEEP_MS = 25

/**
 * Closes a listener: no new connections, calls in flight have `graceMs` to finish, then their connections are cut.
 * `finish` runs when no call is left, or when the time is over: it must end whatever such calls still wait for.
 */
export async function drain(app: FastifyInstance, graceMs: number, finish?: () => Promise<void>): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  const inTime = new AbortController()
  // Fastify would go on accepting until its `preClose` hooks, and so the calls in flight, are done.
  const stopped = new Promise<void>((resolve) => app.server.close(() => resolve()))
  const closed = Promise.all([app.close(), stopped, closeOtherAddresses(app.server)])
  const cut = delay(graceMs, undefined, { signal: inTime.signal }).then(
    () => app.server.closeAllConnections(),
    () => {},
  )
  try {
    await Promise.race([closed, cut])
  } finally {
    await finish?.()
  }
  await closed.finally(() => {
    inTime.abort()
    clearInterval(sweep)
  })
}
