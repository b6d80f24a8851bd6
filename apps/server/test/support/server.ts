import { groupFolder, testFolder } from '@signalbox/testkit/test-folder'
import pino from 'pino'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

import type { Config } from '../../src/config/schema.ts'
import type { PartialConfig } from '../../src/config/load.ts'
import { createConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import { startServer } from '../../src/server.ts'
import type { Environment } from '../../src/telemetry/telemetry.ts'

/** Returns settings with free ports and, unless they name a store, one at this path. */
function configOf(partial: PartialConfig, path: () => string): Config {
  return createConfig({
    shutdownSeconds: 1,
    ...partial,
    http: { port: 0, ...partial.http },
    api: { port: 0, ...partial.api },
    store: { path: partial.store?.path ?? path(), ...partial.store },
  })
}

/** Starts a server in this process, on free ports, with a store of its own. It closes when the running test ends. */
export async function serve(partial: PartialConfig = {}, env?: Environment): Promise<RunningServer> {
  const server = await startServer(configOf({ log: { level: 'silent' }, ...partial }, testFolder), { env })
  onTestFinished(() => server.close())
  return server
}

/**
 * Starts one server for all tests of a file or a `describe`, where it must be called. Returns a function that returns it, for
 * tests that do not see what others leave at the server.
 */
export function serveAll(partial: () => PartialConfig = () => ({})): () => RunningServer {
  const path = groupFolder()
  let server: RunningServer | undefined
  beforeAll(async () => {
    server = await startServer(configOf({ log: { level: 'silent' }, ...partial() }, () => path))
  })
  afterAll(() => server?.close())
  return () => {
    if (server === undefined) throw new Error('the server starts before the first test')
    return server
  }
}

interface LoggedServer {
  readonly server: RunningServer
  /** The lines of its log so far. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
}

/** Like {@link serve}, with a log that the test reads. */
export async function serveLogged(
  partial: PartialConfig = {},
  level = 'info',
  env?: Environment,
): Promise<LoggedServer> {
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const server = await startServer(configOf(partial, testFolder), { log: pino({ level }, { write }), env })
  onTestFinished(() => server.close())
  return { server, lines }
}
