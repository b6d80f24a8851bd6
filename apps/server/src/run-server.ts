import process from 'node:process'
import v8 from 'node:v8'

import { fromFlags } from './config/flags.ts'
import { loadConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { prepareEngine } from './engine/engines.ts'
import { ServerError } from './errors.ts'
import { crashOnUnhandledErrors, stopOnSignals } from './lifecycle/signals.ts'
import { createAnnouncer, createLogger, logLibraryOutput } from './logging/logger.ts'
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
      const { configText } = await import('./config/document.ts')
      process.stdout.write(await configText(loaded))
      const { telemetryText } = await import('./telemetry/telemetry.ts')
      process.stdout.write(telemetryText(env))
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
        env,
        configFile,
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

/**
 * Switches V8's allocation-site pretenuring off. If many requests wait, V8 learns that the objects
 * of a request live long, and then allocates such objects, including those of short requests, in
 * the old generation. There they are garbage that keeps whole requests alive, and collections that
 * took 5 ms take 20 to 40 ms (docs/decisions/0005).
 *
 * Called after the start: compiled code is valid only for the flags that it was compiled with. With
 * a changed flag Node compiles its built-in modules again when it loads them, a tenth of a start.
 */
function disablePretenuring(): void {
  v8.setFlagsFromString('--no-allocation-site-pretenuring')
  // The next full collection begins when the heap is twice as large as after the last one. Otherwise large bodies, which
  // are outside the heap, cause one every 150 ms.
  v8.setFlagsFromString('--heap-growing-percent=100')
}

/** Returns the lines that a person at a terminal sees when the server is ready. */
function welcomeText(
  { connectors, console }: Pick<Config, 'connectors' | 'console'>,
  http: string,
  api: string,
): string {
  return [
    connectors.mcp.enable ? `tools for models   ${http}/mcp` : `applications       ${http}`,
    console.enable ? `console            ${api}/console/` : `management API     ${api}/api/snapshot`,
    'documentation      https://github.com/signalbox/signalbox/tree/main/docs',
    '',
  ].join('\n')
}
