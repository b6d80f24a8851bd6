import { constants } from 'node:os'
import process from 'node:process'

import type { Logger } from '../logging/logger.ts'
import type { RunningServer } from '../server.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** The handling of unhandled errors. */
export interface UnhandledErrors {
  /** Writes one last line and ends the process with exit code 1. */
  crash(error: unknown): void
  /**
   * Makes unhandled rejections reports instead of crashes: a rejection concerns one request, not
   * the process.
   */
  reportRejections(report: (error: unknown) => void): void
}

/** Ends the process after an unhandled error, because its state is unknown. */
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

/**
 * The time of a shutdown in addition to the grace period of calls, in ms, for example to close the
 * store.
 */
const CLOSE_MS = 4_000

/** Converts signals into a shutdown of a server that is starting, waits for its store, or runs. */
export interface SignalStop {
  /** Aborted by the first signal, which ends a start. */
  readonly signal: AbortSignal
  /** Sets the server that a signal shuts down. */
  use(server: RunningServer): void
  /** Ends the process after a signal has ended the start and every part is closed. */
  abandoned(): void
}

/**
 * Shuts the server down on SIGTERM and SIGINT, with exit code 0. A second signal, or a shutdown
 * that takes too long, ends the process at once.
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
    running.close().then(stopped, (error: unknown) => fail('signalbox shutdown failed', error))
  }

  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(128 + constants.signals[signal])
      log.info({ signal }, 'signalbox is shutting down')
      setTimeout(() => fail('signalbox shutdown timed out'), shutdownSeconds * 1000 + CLOSE_MS)
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
