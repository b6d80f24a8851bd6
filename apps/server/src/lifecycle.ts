import { constants } from 'node:os'
import process from 'node:process'

import type { Logger } from './log.ts'
import type { RunningServer } from './server.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** An error that nobody handled leaves the process in a state that nobody knows: one last line, and exit code 1. */
export function crashOnUnhandledErrors(announcer: Logger): void {
  const crash = (error: unknown): void => {
    const text = error instanceof Error ? error.message : String(error)
    announcer.fatal({ err: error }, `signalbox crashed: ${text}`)
    process.exit(1)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
}

/** What a shutdown may take beyond the time for calls in flight, in milliseconds: to close the store, say. */
const CLOSE_MS = 4_000

/**
 * SIGTERM and SIGINT shut the server down, with exit code 0; a second one ends the process at once, and so does a
 * shutdown that does not come to its end. A signal that comes before the server is there ends it when it is.
 */
export function stopOnSignals(log: Logger, shutdownSeconds: number): { use(server: RunningServer): void } {
  let server: RunningServer | undefined
  let signalled = false

  const fail = (text: string, error?: unknown): void => {
    log.fatal(error === undefined ? {} : { err: error }, text)
    process.exit(1)
  }
  const stop = (running: RunningServer): void => {
    setTimeout(() => fail('signalbox did not come to its end in time'), shutdownSeconds * 1000 + CLOSE_MS)
    running.close().then(
      () => {
        log.info('signalbox stopped')
        process.exit(0)
      },
      (error: unknown) => fail('signalbox could not shut down cleanly', error),
    )
  }

  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (signalled) process.exit(128 + constants.signals[signal])
      signalled = true
      log.info({ signal }, 'signalbox is shutting down')
      if (server) stop(server)
    })
  }
  return {
    use(running) {
      server = running
      if (signalled) stop(running)
    },
  }
}
