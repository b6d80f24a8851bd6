import { onTestFinished } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import type { PartialConfig } from '../../src/config/load.ts'
import { createConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import { startServer } from '../../src/server.ts'

/** A server in this process, on free ports, with a store of its own; it closes when the test is over. */
export async function serve(partial: PartialConfig = {}): Promise<RunningServer> {
  const config = createConfig({
    log: { level: 'silent' },
    shutdownSeconds: 1,
    ...partial,
    http: { port: 0, ...partial.http },
    api: { port: 0, ...partial.api },
    store: { path: testFolder(), ...partial.store },
  })
  const server = await startServer(config)
  onTestFinished(() => server.close())
  return server
}
