import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createConfig, startServer } from 'signalbox'

import type { Addresses } from './shown-session.ts'

/**
 * Starts a server with the default settings in this process, on free ports and with a separate store, until the stack
 * is disposed of. It needs a tenth of the CPU time of a process.
 */
export async function startInProcess(stack: AsyncDisposableStack): Promise<Addresses> {
  const path = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
  stack.defer(() => rmSync(path, { recursive: true, force: true }))
  const server = await startServer(
    createConfig({ log: { level: 'silent' }, http: { port: 0 }, api: { port: 0 }, store: { path } }),
  )
  stack.defer(() => server.close())
  return { http: server.http.url, api: server.api.url }
}
