import process from 'node:process'

import { fromFlags } from './config/flags.ts'
import { loadConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { prepareEngine } from './engine/engines.ts'
import { ServerError } from './errors.ts'
import { disablePretenuring } from './lifecycle/pretenuring.ts'
import { crashOnUnhandledErrors, stopOnSignals } from './lifecycle/signals.ts'
import { logLibraryOutput } from './logging/library-output.ts'
import { createAnnouncer, createLogger } from './logging/logger.ts'
import { standardOutput } from './logging/standard-output.ts'
import type { RunningServer } from './server.ts'
import { VERSION } from './version.ts'

/**
 * Exit codes: 0 stopped by a signal, 1 could not start or failed, 2 a setting is unknown or not
 * allowed.
 */
const EXIT_CODES = { CONFIG_INVALID: 2, START_FAILED: 1 } as const

/** Prints the requested text, or runs the server until a signal stops it. */
export async function runServer(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const announcer = createAnnouncer()
  const unhandled = crashOnUnhandledErrors(announcer)
  try {
    const flags = fromFlags(args)
    if (flags.help) {
      const { helpText } = await import('./config/document.ts')
      process.stdout.write(helpText())
      return
    }
    if (flags.version) {
      process.stdout.write(`${VERSION}\n`)
      return
    }
    const loaded = await loadConfig({ flags, env })
    if (flags.printConfig) {
      const { configText } = await import('./config/print.ts')
      process.stdout.write(await configText(loaded))
      for (const notice of loaded.notices) process.stderr.write(`signalbox: ${notice}\n`)
      return
    }
    const log = await createLogger(loaded.config.log)
    logLibraryOutput(log)
    for (const notice of loaded.notices) log.warn(notice)
    const stop = stopOnSignals(log, loaded.config.shutdownSeconds)
    await prepareEngine(loaded.config)
    // Loaded after the settings, so that a wrong setting is reported at once.
    const [{ startServer }, { unhandledRejections }] = await Promise.all([
      import('./server.ts'),
      import('./metrics/process.ts'),
    ])
    unhandled.reportRejections((error) => {
      unhandledRejections().inc()
      log.error({ err: error }, 'unhandled rejection')
    })
    let server: RunningServer
    try {
      const load = async (): Promise<Config> => (await loadConfig({ flags, env })).config
      const configFile = flags.file === undefined ? undefined : { path: flags.file, load }
      server = await startServer(loaded.config, {
        log,
        signal: stop.signal,
        origins: loaded.origins,
        ...(configFile ? { configFile } : {}),
      })
    } catch (error) {
      if (!stop.signal.aborted) throw error
      stop.abandoned()
      return
    }
    stop.use(server)
    announcer.info({ http: server.http.url, api: server.api.url, version: VERSION }, 'signalbox ready')
    disablePretenuring()
    if (process.stdout.isTTY) {
      const { welcomeText } = await import('./logging/welcome.ts')
      standardOutput().write(welcomeText(loaded.config, server.http.url, server.api.url))
    }
  } catch (error) {
    if (!(error instanceof ServerError)) {
      unhandled.crash(error)
      return
    }
    for (const problem of error.problems) process.stderr.write(`signalbox: ${problem}\n`)
    process.exit(EXIT_CODES[error.code])
  }
}
