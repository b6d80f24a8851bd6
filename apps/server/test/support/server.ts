import { groupFolder, testFolder } from '@signalbox/testkit/test-folder'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

import type { PartialConfig } from '../../src/config/load.ts'
import { createConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import { startServer } from '../../src/server.ts'

function start(partial: PartialConfig, path: () => string): Promise<RunningServer> {
  const config = createConfig({
    log: { level: 'silent' },
    shutdownSeconds: 1,
    ...partial,
    http: { port: 0, ...partial.http },
    api: { port: 0, ...partial.api },
    store: { path: partial.store?.path ?? path(), ...partial.store },
  })
  return startServer(config)
}

/** Starts a server in this process, on free ports, with a store of its own. It closes when the running test ends. */
export async function serve(partial: PartialConfig = {}): Promise<RunningServer> {
  const server = await start(partial, testFolder)
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
    server = await start(partial(), () => path)
  })
  afterAll(() => server?.close())
  return () => {
    if (server === undefined) throw new Error('the server starts before the first test')
    return server
  }
}
