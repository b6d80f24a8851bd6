import { setTimeout as delay } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'

import { closeOtherAddresses } from '../listeners/other-addresses.ts'

/** How often connections that have become idle are closed, so that none keeps a shutdown waiting for its keep-alive. */
const SWEEP_MS = 25

/** A listener that is being closed. */
export interface Drain {
  /** Resolves when no call is left, or when the time for them is over and their connections were cut. */
  readonly finished: Promise<void>
  /** Resolves when the listener is closed: calls that were cut may wait for the engine until that is closed. */
  readonly closed: Promise<void>
}

/** Closes a listener: no new connections; calls in flight have `graceMs` to finish, then their connections are cut. */
export function drain(app: FastifyInstance, graceMs: number): Drain {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  const inTime = new AbortController()
  // Fastify would go on accepting until its `preClose` hooks, and so the calls in flight, are done.
  const stopped = new Promise<void>((resolve) => app.server.close(() => resolve()))
  const closed = Promise.all([app.close(), stopped, closeOtherAddresses(app.server)])
    .then(() => {})
    .finally(() => {
      inTime.abort()
      clearInterval(sweep)
    })
  const cut = delay(graceMs, undefined, { signal: inTime.signal }).then(
    () => app.server.closeAllConnections(),
    () => {},
  )
  return { finished: Promise.race([closed, cut]), closed }
}
