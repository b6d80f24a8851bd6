import { setTimeout as delay } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'

import { closeOtherAddresses } from '../listeners/other-addresses.ts'

/**
 * The interval at which idle connections are closed, in ms, so that keep-alive does not delay a
 * shutdown.
 */
const SWEEP_MS = 25

/** A listener that is being closed. */
export interface Drain {
  /** Resolves when no call is left, or when the grace period is over and the connections were cut. */
  readonly finished: Promise<void>
  /** Resolves when the listener is closed. Calls that were cut may wait until the engine is closed. */
  readonly closed: Promise<void>
}

/**
 * Closes a listener: it accepts no new connections, waits up to `graceMs` for calls in flight, then
 * cuts their connections.
 */
export function drain(app: FastifyInstance, graceMs: number): Drain {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  const inTime = new AbortController()
  // Fastify would continue to accept connections until its `preClose` hooks, and so the calls in
  // flight, are done.
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
