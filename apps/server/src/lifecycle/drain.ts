import type { Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

import { closeOtherAddresses } from '../listeners/address.ts'

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
 * cuts their connections. `close` ends what answers the calls.
 */
export function drain(server: Server, graceMs: number, close: () => Promise<unknown>): Drain {
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const inTime = new AbortController()
  // At once: Fastify would accept connections until the calls in flight are done.
  const stopped = new Promise<void>((resolve) => server.close(() => resolve()))
  const closed = Promise.all([close(), stopped, closeOtherAddresses(server)])
    .then(() => {})
    .finally(() => {
      inTime.abort()
      clearInterval(sweep)
    })
  const cut = delay(graceMs, undefined, { signal: inTime.signal }).then(
    () => server.closeAllConnections(),
    () => {},
  )
  return { finished: Promise.race([closed, cut]), closed }
}
