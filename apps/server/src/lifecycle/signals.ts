import { constants } from 'node:os'
import process from 'node:process'

import type { Logger } from '../logging/logger.ts'
import type { RunningServer } from '../server.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** What becomes of errors that nobody handled. */
export interface UnhandledErrors {
  /** Writes one last line and ends the process with exit code 1. */
  crash(error: unknown): void
  /** From now on a rejected promise without an owner is reported instead: it belongs to one request, not to all. */
  reportRejections(report: (error: unknown) => void): void
}

/** Ends the process for errors that nobody handled: they leave it in a state that nobody knows. */
export function crashOnUnhandledErrors(announcer: Logger): UnhandledErrors {
  const crash = (error: unknown): void => {
    const text = error instanceof Error ? error.message : String(error)
    announcer.fatal({ err: error }, `signalbox crashed: ${text}`)
    process.exit(1)
  }
  let rejected = crash
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', (error) => rejected(error))
  return {
    crash,
    reportRejections(report) {
      rejected = report
    },
  }
}

/** What a shutdown may take beyond the time for calls in flight, in milliseconds: to close the store, say. */
const CLOSE_MS = 4_000

/** Turns signals into a shutdown of a server that starts, waits for its store, or runs. */
export interface SignalStop {
  /** Aborted by the first signal: what still starts gives up. */
  readonly signal: AbortSignal
  /** The server is there: a signal shuts it down. */
  use(server: RunningServer): void
  /** The start was given up because of the signal, and nothing is open any more: ends the process. */
  abandoned(): void
}

/**
 * Shuts the server down on SIGTERM and SIGINT, with exit code 0. A second signal ends the process at once, and so does a
 * shutdown that takes too long.
 */
export function stopOnSignals(log: Logger, shutdownSeconds: number): SignalStop {
  let server: RunningServer | undefined
  const stopping = new AbortController()

  const fail = (text: string, error?: unknown): void => {
    log.fatal(error === undefined ? {} : { err: error }, text)
    process.exit(1)
  }
  const stopped = (): void => {
    log.info('signalbox stopped')
    process.exit(0)
  }
  const stop = (running: RunningServer): void => {
    running.close().then(stopped, (error: unknown) => fail('signalbox could not shut down cleanly', error))
  }

  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(128 + constants.signals[signal])
      log.info({ signal }, 'signalbox is shutting down')
      setTimeout(() => fail('signalbox did not come to its end in time'), shutdownSeconds * 1000 + CLOSE_MS)
      stopping.abort()
      if (server) stop(server)
    })
  }
  return {
    signal: stopping.signal,
    use(running) {
      server = running
      if (stopping.signal.aborted) stop(running)
    },
    abandoned: stopped,
  }
}
